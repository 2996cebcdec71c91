"""The data of MileBench: finds it, unpacks the archives, and makes documents of annotation files."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loguru import logger

from lmms_eval.errors import DataError, MissingDataError
from lmms_eval.tasks._task_utils.archives import alone, rename, unpacked
from lmms_eval.tasks._task_utils.media_files import copies_below, hf_home, hub_snapshots
from lmms_eval.tasks.data.splits import Rows
from lmms_eval.tasks.milebench.facts import datasets, find
from lmms_eval.tasks.milebench.settings import Settings

REPOSITORY = "FreedomIntelligence/MileBench"
FOLDER = "milebench_data"
"""Below ``HF_HOME``: where archives are unpacked."""
_QUESTION_TYPES = {"multi-choice": "accuracy", "open-ended": "rouge_l"}
_BY_NAME = ("NeedleInAHaystack", "MMCoQA")


def documents(name: str, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> Rows:
    """Return the documents of a data set (``dataset_path: !function data.documents``).

    Raises ``DataError`` if the data is missing (the message names the files to fetch) or malformed.
    """
    settings = Settings.of(lmms_eval_specific_kwargs)
    file = annotation_file(root(name, settings), name, settings)
    meta, data = read_annotation(file)
    kind, expected = meta.get("question_type"), find(name).metric
    if not any(part in name for part in _BY_NAME) and _QUESTION_TYPES.get(str(kind), expected) != expected:
        logger.warning("{}: question_type is {!r}, which is scored so; the paper reports {}", file, kind, expected)
    made = [row(entry, meta, f"{file}: data[{number}]", name, settings) for number, entry in enumerate(data)]
    return Rows(made, [file])


def root(name: str, settings: Settings) -> Path:
    """Find the folder that holds the data set's folder: ``ROOT/NAME/NAME.json``.

    It is searched below the settings' own folder, ``--data_root`` and ``$HF_HOME/milebench_data``. If only the archive
    is found, there or in the hub's cache, it is unpacked into the latter. Raises ``DataError`` if both are missing, or
    the archive is damaged.
    """
    if settings.folder is not None:
        return settings.folder
    return _root(name, settings.data_root, str(hf_home()))


@functools.lru_cache(maxsize=256)
def _root(name: str, data_root: str | None, home: str) -> Path:
    target, archive = Path(home) / FOLDER, archive_name(name)
    folders = [target]
    if data_root is not None:
        given, *by_owner, by_name = copies_below(data_root, REPOSITORY)
        folders = [given, by_name, *by_owner, target]
    for folder in folders:
        if (folder / name / f"{name}.json").is_file():
            return folder
    for folder in (*folders, *hub_snapshots(REPOSITORY)):
        if (folder / archive).is_file():
            unpack(folder / archive, target, name)
            return target
    others = [other.name for other in datasets().values() if other.part == find(name).part and other.name != name]
    tried = ", ".join(str(folder / name / f"{name}.json") for folder in folders)
    raise MissingDataError(
        f"the data of MileBench's {name} are not there; looked for {tried}. Download {archive} ({find(name).part_gb} "
        f"GB; it also holds {', '.join(others)}) from the data set repository {REPOSITORY} (`hf download {REPOSITORY} "
        f"{archive} --repo-type dataset`: it is then found and unpacked by itself), or unpack it so that "
        f"{target / name} exists, or give a folder that holds {name}/{name}.json and {name}/images/ with "
        f"--data_root DIR"
    )


def archive_name(name: str) -> str:
    """The file on the hub that holds a data set."""
    return f"MileBench_part{find(name).part}.tar.gz"


def unpack(archive: Path, target: Path, name: str) -> None:
    """Unpack an archive so that ``target/NAME/NAME.json`` exists, with the other data sets of the archive next to it.

    If another process is unpacking it, wait for that. Raises ``DataError`` if the archive is damaged, does not hold the
    data set, holds links or names that lead outside, or does not fit on the disk; then nothing is changed.
    """
    with alone(target):
        if (target / name / f"{name}.json").is_file():
            return
        with unpacked(archive, target) as folder:
            files = [file for file in folder.rglob("*.json") if file.stem == file.parent.name]
            found = {file.stem: file.parent for file in files}
            if name not in found:
                has = ", ".join(sorted(found)) or "no data set"
                raise DataError(f"{archive} holds no {name}/{name}.json; it has: {has}")
            for dataset, content in found.items():
                if dataset == name and (target / name).exists():
                    raise DataError(
                        f"{target / name} is there without {name}.json; remove it, then {archive} is unpacked"
                    )
                if not (target / dataset).exists():
                    rename(content, target / dataset)


def annotation_file(root: Path, name: str, settings: Settings) -> Path:
    """Return the annotation for the settings: adversarial, of N > 1 sheets if that was made, else the regular one.

    Raises ``DataError`` if there is no adversarial variant.
    """
    folder = root / name
    if settings.adversarial:
        file = folder / f"{name}-adv.json"
        if not file.is_file():
            known = "" if find(name).has_adversarial else " (MileBench has none; every task of milebench_realistic has)"
            raise DataError(f"{name} has no adversarial variant here: {file} does not exist{known}")
        return file
    combined = folder / f"{name}_combined_{settings.combine_image}.json"
    return combined if settings.combine_image > 1 and combined.is_file() else folder / f"{name}.json"


def read_annotation(file: Path) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]:
    """Read the ``meta_data`` and the ``data`` of an annotation file.

    Raises ``DataError`` if it cannot be read, or its top level is not ``meta_data`` and ``data``.
    """
    try:
        whole = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{file} cannot be read as JSON: {error}") from error
    meta, data = (whole.get("meta_data"), whole.get("data")) if isinstance(whole, Mapping) else (None, None)
    if not isinstance(meta, Mapping) or not isinstance(data, list) or not all(isinstance(x, Mapping) for x in data):
        raise DataError(f"{file}: no MileBench annotation: it must hold meta_data (a mapping) and data (a list)")
    return meta, data


def row(entry: Mapping[str, Any], meta: Mapping[str, Any], where: str, name: str, settings: Settings) -> dict[str, Any]:
    """Make a document of a sample: plain columns, the instruction looked up, and the sheets that the settings request.

    ``where`` names the file and the sample's place. Raises ``DataError`` if the sample is malformed.
    """
    instance = entry.get("task_instance")
    if not isinstance(instance, Mapping):
        raise DataError(f"{where}: no task_instance")
    if not isinstance(instance.get("context"), str) or "response" not in entry:
        raise DataError(f"{where}: needs task_instance.context (a text) and response")
    stated: Any = entry.get("sample_id")
    try:
        sample_id = int(stated)
    except (TypeError, ValueError):
        raise DataError(f"{where}: sample_id {stated!r} is no whole number") from None
    known, place = meta.get("task_instruction"), entry.get("task_instruction_id")
    if not isinstance(known, list) or not isinstance(place, int) or not 0 <= place < len(known):
        raise DataError(f"{where}: task_instruction_id {place!r} is no entry of meta_data.task_instruction")
    choices = instance.get("choice_list")
    sheets = instance.get(f"combined_{settings.combine_image}_images") if settings.combine_image else None
    return {
        "sample_id": sample_id,
        "dataset": name,
        "instruction": str(known[place]),
        "context": instance["context"],
        "images_path": _texts(instance.get("images_path"), where, "images_path"),
        "choice_list": None if choices is None else [str(choice) for choice in choices],
        "response": str(entry["response"]),
        "question_type": str(meta.get("question_type")),
        "image_quantity_level": entry.get("image_quantity_level"),
        "sheets": None if sheets is None else _texts(sheets, where, "combined images"),
        "needle_depth": _number(entry.get("depth")),
        "needle_length": _number(entry.get("length")),
    }


def _texts(value: Any, where: str, key: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise DataError(f"{where}: {key} must be a list of paths, not {value!r:.80}")
    for path in value:
        if path.startswith("/") or ".." in path.split("/") or "\\" in path or "\0" in path:
            raise DataError(f"{where}: {key} names {path!r}, which is outside the folder of pictures")
    return list(value)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
