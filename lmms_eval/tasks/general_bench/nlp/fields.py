"""Parts of a language item that its prompt and the reading of its reply need, with errors that name the key."""

from __future__ import annotations

import json
import string
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from lmms_eval.errors import DataError

LETTERS = string.ascii_uppercase
"""Letters of the options of a question, in order."""


class Fields(Struct, frozen=True):
    """An item's entry of the annotation. Keys are given outermost first."""

    task: str
    raw: Mapping[str, Any]

    def get(self, *path: str) -> Any:
        """Return the value, or ``None`` if it or an object above it is missing."""
        value: Any = self.raw
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def value(self, *path: str) -> Any:
        """Return the value. Raises ``DataError`` if it is missing or null."""
        value = self.get(*path)
        if value is None:
            raise self.error(f"no {'.'.join(path)}")
        return value

    def text(self, *path: str) -> str:
        """Return the value as text. Raises ``DataError`` if it is missing or null."""
        return as_text(self.value(*path))

    def entries(self, *path: str) -> list[Any]:
        """Return the value as a list. Raises ``DataError`` if it is missing or not a list."""
        value = self.value(*path)
        if not isinstance(value, list):
            raise self.error(f"{'.'.join(path)} is {value!r:.80}, no list")
        return value

    def options(self) -> list[str]:
        """Return the options of a multiple-choice question: at least one, and at most as many as there are letters."""
        options = [as_text(option) for option in self.entries("input", "options")]
        if not 0 < len(options) <= len(LETTERS):
            raise self.error(f"input.options has {len(options)} entries; 1 to {len(LETTERS)} are expected")
        return options

    def error(self, problem: str) -> DataError:
        return DataError(f"{self.task!r}, item {self.raw.get('id')!r}: {problem}")


def as_text(value: Any) -> str:
    """Return a text unchanged, and anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
