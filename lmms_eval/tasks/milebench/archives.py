"""Unpacking MileBench's archives: complete or not at all."""

from __future__ import annotations

from pathlib import Path

from lmms_eval.errors import DataError
from lmms_eval.tasks._task_utils.archives import alone, rename, unpacked


def unpack(archive: Path, target: Path, name: str) -> None:
    """Unpack an archive so that ``target/NAME/NAME.json`` exists, with the other data sets of the archive beside it.

    Another process that is at it is waited for.

    Raises:
        DataError: the archive is damaged, does not hold the data set, holds links or names that lead outside, or does
            not fit on the disk; then nothing is changed.
    """
    with alone(target):
        if not (target / name / f"{name}.json").is_file():
            with unpacked(archive, target) as folder:
                _place(folder, archive, target, name)


def _place(folder: Path, archive: Path, target: Path, name: str) -> None:
    files = [file for file in folder.rglob("*.json") if file.stem == file.parent.name]
    found = {file.stem: file.parent for file in files}
    if name not in found:
        has = ", ".join(sorted(found)) or "no data set"
        raise DataError(f"{archive} holds no {name}/{name}.json; it has: {has}")
    for dataset, content in found.items():
        if dataset == name and (target / name).exists():
            raise DataError(f"{target / name} is there without {name}.json; remove it, then {archive} is unpacked")
        if not (target / dataset).exists():
            rename(content, target / dataset)
