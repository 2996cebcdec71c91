"""Data of a report in pieces that a page loads when it needs them, from disk too.

A page that was opened from disk may not fetch files, but may load scripts. So each piece is a script of one call whose
argument is JSON in a string: read by ``JSON.parse``, keys such as ``__proto__`` are keys and nothing is ever run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import orjson

from lmms_eval.errors import LmmsEvalError
from lmms_eval.storage.atomic import replacing
from lmms_eval.utils.redaction import mask_known

_NAME = re.compile(r"[a-z0-9-]{1,80}")
ENDINGS = frozenset({".js", ".webp", ".png", ".jpg", ".gif", ".wav", ".jsonl"})
"""Of the files in a report's folders of data and media."""
_MOST = 2**63
"""Whole numbers from here on are texts: orjson knows none of them, and browsers round them."""


class Chunks(Protocol):
    """A place for the pieces."""

    def write(self, name: str, content: Any) -> None:
        """Keep a piece. Raises ``LmmsEvalError`` if it cannot be written."""


@dataclass(frozen=True, slots=True)
class FolderChunks:
    """Pieces as scripts ``FOLDER/NAME.js``."""

    folder: Path
    before: Callable[[], None] = lambda: None
    """Called before each piece; may raise to end the writing."""
    names: set[str] = field(default_factory=set)
    """Names of the files that were written."""

    def write(self, name: str, content: Any) -> None:
        self.before()
        text = orjson.dumps(chunk_text(name, content)).decode()
        write_file(self.folder / f"{name}.js", f'lmmsChunk("{name}",{text});\n'.encode())
        self.names.add(f"{name}.js")


@dataclass(frozen=True, slots=True)
class PageChunks:
    """Pieces as blocks of JSON for the page itself, by name."""

    texts: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, content: Any) -> None:
        # Within JSON "<" stands in strings only: escaped there, no text can end the block.
        self.texts[name] = chunk_text(name, content).replace("<", "\\u003c")


def chunk_text(name: str, content: Any) -> str:
    """Make the JSON of a piece, known secrets masked."""
    assert _NAME.fullmatch(name), name
    return mask_known(json_of(content))


def json_of(content: Any) -> str:
    """Write JSON that browsers read; numbers that JSON lacks are ``null``, halves of surrogate pairs question marks."""
    try:
        found = orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS, default=str)
    except TypeError:
        found = orjson.dumps(_plain(content))
    return found.decode()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_plain(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bool | None):
        return value
    if isinstance(value, int):
        return value if -_MOST < value < _MOST else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value).encode("utf-8", "replace").decode()


def forget_others(folder: Path, names: Collection[str]) -> None:
    """Delete the files of an earlier report that are not among those named."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name not in names and path.suffix in ENDINGS:
            path.unlink(missing_ok=True)


def write_file(path: Path, data: bytes) -> None:
    """Write a file of a report, as a whole. Raises ``LmmsEvalError`` if that cannot be done."""
    try:
        with replacing(path, survives_power_loss=False) as file:
            file.write(data)
    except OSError as error:
        raise LmmsEvalError(f"cannot write {path}: {error.strerror or error}") from error
