"""Unpacking MileBench's archives: complete or not at all, nothing outside the target, no links."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from lmms_eval.errors import DataError

_ERRORS = (OSError, tarfile.TarError, EOFError, ValueError)


def unpack(archive: Path, target: Path, name: str) -> None:
    """Unpack an archive so that ``target/NAME/NAME.json`` exists, with the other data sets of the archive beside it.

    Another process that is at it is waited for.

    Raises:
        DataError: the archive is damaged, does not hold the data set, holds links or names that lead outside, or does
            not fit on the disk; then nothing is changed.
    """
    try:
        target.mkdir(parents=True, exist_ok=True)
        with _alone(target):
            if not (target / name / f"{name}.json").is_file():
                _unpack(archive, target, name)
    except _ERRORS as error:
        raise DataError(f"{archive} cannot be unpacked into {target}: {error}; download it again") from error


def _unpack(archive: Path, target: Path, name: str) -> None:
    needed, free = archive.stat().st_size, shutil.disk_usage(target).free
    if needed > free:
        raise DataError(
            f"{archive} needs at least {needed / 1e9:.1f} GB in {target}, which has {free / 1e9:.1f} GB free"
        )
    with tempfile.TemporaryDirectory(dir=target, prefix=".unpacking-") as folder:
        with tarfile.open(archive, "r|gz") as opened:
            for member in opened:
                _check(member, archive)
                opened.extract(member, folder, filter="data")
        files = [file for file in Path(folder).rglob("*.json") if file.stem == file.parent.name]
        found = {file.stem: file.parent for file in files}
        if name not in found:
            has = ", ".join(sorted(found)) or "no data set"
            raise DataError(f"{archive} holds no {name}/{name}.json; it has: {has}")
        for dataset, unpacked in found.items():
            if not (target / dataset).exists():
                os.rename(unpacked, target / dataset)
            elif dataset == name:
                raise DataError(f"{target / name} is there without {name}.json; remove it, then {archive} is unpacked")


def _check(member: tarfile.TarInfo, archive: Path) -> None:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or "\\" in member.name:
        raise DataError(f"{archive} holds {member.name!r}, which leads outside its folder: nothing was unpacked")
    if not (member.isfile() or member.isdir()):
        raise DataError(f"{archive} holds {member.name!r}, which is a link or device: nothing was unpacked")


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks: renaming keeps what another one finished
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
