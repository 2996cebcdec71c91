"""``pred.json``: the answers of a model to a data set, written by a run and read by the stand-alone scripts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loguru import logger

from lmms_eval.errors import DataError
from lmms_eval.storage.atomic import read_json
from lmms_eval.tasks._task_utils.submissions import indented_json

if TYPE_CHECKING:
    from lmms_eval.tasks.milebench.prompts import FinishedPrompt

PREDICTIONS = "pred.json"
_KEYS = ("sample_id", "image", "question", "gt_response", "gen_model_id", "pred_response", "gen_kwargs")


def record(doc: Mapping[str, Any], prompt: FinishedPrompt, answer: str) -> dict[str, Any]:
    """Return the file's record of one sample. Paths are relative to the data's root folder."""
    return {
        "sample_id": int(doc["sample_id"]),
        "n_images": len(doc["images_path"]),
        "image": list(prompt.images),
        "question": prompt.text,
        "gt_response": str(doc["response"]),
        "pred_response": answer,
    }


def in_order(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Sort records as the authors' script: by the annotation's number of pictures, groups as they first occur.

    If records share a ``sample_id``, the first gives the place and the last the content, with a warning.
    """
    groups: dict[int, list[Mapping[str, Any]]] = {}
    for item in records:
        groups.setdefault(round(item["n_images"]), []).append(item)
    found: dict[Any, Mapping[str, Any]] = {}
    for group in groups.values():
        for item in group:
            if item["sample_id"] in found:
                logger.warning(
                    "sample_id {} occurs twice in the data: {} keeps the last", item["sample_id"], PREDICTIONS
                )
            found[item["sample_id"]] = item
    return list(found.values())


def dumps(records: Iterable[Mapping[str, Any]], model: str, generation: Mapping[str, Any]) -> str:
    """Return the text of ``pred.json``: a list, four-space indent, non-ASCII kept."""
    same = {"gen_model_id": model, "gen_kwargs": dict(generation)}
    rows = [{key: {**item, **same}[key] for key in _KEYS} for item in in_order(records)]
    return indented_json(rows, ensure_ascii=False)


def read_predictions(path: Path) -> list[tuple[int, Mapping[str, Any]]]:
    """Read the records of a ``pred.json``, each with the number of its sample.

    Raises:
        DataError: it is missing, is not a complete JSON list, or is empty; or a record is no object, or its
            ``sample_id`` is not a number.
    """
    if not path.is_file():
        raise DataError(f"there are no predictions {path}; a run writes them, --result-dir names one model's folder")
    content = read_json(path)
    if not isinstance(content, list) or not content:
        raise DataError(f"{path} holds no predictions: it must be a list with a record a sample")
    found = []
    for position, entry in enumerate(content):
        number = sample_number(entry.get("sample_id")) if isinstance(entry, Mapping) else None
        if number is None:
            raise DataError(f"{path}: record {position} is no object with a sample_id that is a number")
        found.append((number, entry))
    return found


def sample_number(value: Any) -> int | None:
    """Read a ``sample_id`` as a number: an integer, or a text of digits; ``None`` for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return int(value) if value.isdecimal() and value.isascii() and len(value) <= 18 else None
    return value if isinstance(value, int) else None


def fingerprint(path: Path) -> str:
    """Compute the SHA-256 of a file, in hexadecimal digits. Raises ``DataError`` if it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
