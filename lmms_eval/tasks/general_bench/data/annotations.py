"""Reading of annotation files, as a whole or only up to the items."""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmms_eval.errors import DataError
from lmms_eval.storage.atomic import read_json
from lmms_eval.tasks.general_bench.items import Annotation

ANNOTATION = "annotation.json"
_FIRST_BYTES = 1 << 14
_MOST_BYTES = 1 << 20
"""Longest head that is read without the rest of the file."""
_SPACE = " \t\r\n"
_DECODER = json.JSONDecoder()


def annotation_file(folder: Path) -> Path | None:
    """Return ``annotation.json``, else the first ``*.json`` of a folder that is not a file of predictions, or ``None``.

    Raises ``OSError`` if the folder cannot be listed.
    """
    names = sorted(entry.name for entry in folder.iterdir() if entry.suffix.casefold() == ".json")
    found = [name for name in names if not name.startswith(".") and not name.casefold().startswith("prediction")]
    if ANNOTATION in found:
        return folder / ANNOTATION
    return next((folder / name for name in found if (folder / name).is_file()), None)


def read_annotation(file: Path) -> Annotation:
    """Read an annotation file. Raises ``DataError`` if it is damaged, or no object with a list ``data``."""
    content = _checked(read_json(file), file)
    if not isinstance(content.get("data"), list):
        raise DataError(f"{file}: `data` is {_kind(content.get('data'))}; a list of items is expected")
    return Annotation(
        folder=file.parent,
        file=file,
        task=content.get("task") or "",
        type=content.get("type") or "",
        head={key: value for key, value in content.items() if key != "data"},
        data=tuple(content["data"]),
    )


def read_head(file: Path) -> Mapping[str, Any]:
    """Return the keys before ``data``, or all keys except ``data`` if ``task`` is not among them.

    Only the first bytes of the file are read if they are enough, so the rest may be damaged. Raises ``DataError`` if
    the file cannot be read, is no object, or its ``data`` is no list.
    """
    head: dict[str, Any] | None = None
    size = _FIRST_BYTES
    try:
        with open(file, "rb") as opened:
            content = opened.read(size)
            while (head := _keys_before_data(content)) is None and len(content) >= size and size < _MOST_BYTES:
                content += opened.read(size * 7)
                size *= 8
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}") from error
    return read_annotation(file).head if head is None or "task" not in head else _checked(head, file)


def _keys_before_data(content: bytes) -> dict[str, Any] | None:
    """Read the keys before ``data``, if all of them are in these bytes."""
    head: dict[str, Any] = {}
    try:
        text = codecs.getincrementaldecoder(json.detect_encoding(content))().decode(content)
        place = _past(text, 0, "{")
        while True:
            key, place = _DECODER.raw_decode(text, place)
            place = _past(text, place, ":")
            if key == "data":
                return head if text[place] == "[" else None
            head[key], place = _DECODER.raw_decode(text, place)
            place = _past(text, place, ",")
    except (ValueError, IndexError, RecursionError):
        return None


def _past(text: str, place: int, sign: str) -> int:
    """Return the place after a sign and the white space around it. Raises ``IndexError`` at the end."""
    for expected in (sign, ""):
        while text[place] in _SPACE:
            place += 1
        if expected and text[place] != expected:
            raise ValueError(sign)
        place += len(expected)
    return place


def _checked(content: Any, file: Path) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise DataError(f"{file}: holds {_kind(content)}; an object with `task`, `type` and `data` is expected")
    for key in ("task", "type"):
        if not isinstance(content.get(key, ""), str | None):
            raise DataError(f"{file}: `{key}` is {_kind(content[key])}; text is expected")
    return content


def _kind(value: Any) -> str:
    if value is None:
        return "missing"
    names: dict[type, str] = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return names.get(type(value), "a number")
