"""What a model answered, in the format of the authors' generation script: ``pred.json``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from loguru import logger

from lmms_eval.errors import DataError
from lmms_eval.storage.atomic import replacing
from lmms_eval.tasks.milebench.prompts import Prompt

FILE = "pred.json"
_KEYS = ("sample_id", "image", "question", "gt_response", "gen_model_id", "pred_response", "gen_kwargs")


def record(doc: Mapping[str, Any], prompt: Prompt, answer: str) -> dict[str, Any]:
    """What the file needs of one sample: its document, its prompt, the model's answer. Paths start at the data's root
    folder, wherever that lies."""
    return {
        "sample_id": int(doc["sample_id"]),
        "n_images": len(doc["images_path"]),
        "image": list(prompt.images),
        "question": prompt.text,
        "gt_response": str(doc["response"]),
        "pred_response": answer,
    }


def in_order(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Records in the order of the authors' script: by the annotation's number of pictures, groups as they first occur.

    Of records with one ``sample_id`` the first gives the place and the last the content, with a warning.
    """
    groups: dict[int, list[Mapping[str, Any]]] = {}
    for item in records:
        groups.setdefault(round(item["n_images"]), []).append(item)
    found: dict[Any, Mapping[str, Any]] = {}
    for group in groups.values():
        for item in group:
            if item["sample_id"] in found:
                logger.warning("sample_id {} stands twice in the data: {} keeps the last", item["sample_id"], FILE)
            found[item["sample_id"]] = item
    return list(found.values())


def dumps(records: Iterable[Mapping[str, Any]], model: str, generation: Mapping[str, Any]) -> str:
    """The text of ``pred.json``: a list, four-space indent, non-ASCII kept."""
    same = {"gen_model_id": model, "gen_kwargs": dict(generation)}
    rows = [{key: {**item, **same}[key] for key in _KEYS} for item in in_order(records)]
    return json.dumps(rows, ensure_ascii=False, indent=4)


def write(text: str, path: Path) -> None:
    """Write the file so that at any instant the old or the new one is there, complete.

    Raises:
        DataError: it cannot be written.
    """
    try:
        with replacing(path) as file:
            file.write(text.encode("utf-8", "surrogatepass"))
    except OSError as error:
        raise DataError(f"predictions {path} cannot be written: {error.strerror or error}") from error
