"""The texts for a judge: our own wording, or a user's copy of the authors' texts (``--judge_prompts FILE``).

Authors' texts belong to them and are not shipped. Other wording gives other scores, so every score carries the
fingerprint of the text.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import os
import string
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import Struct

from lmms_eval.api.outcome import Estimate
from lmms_eval.errors import DataError
from lmms_eval.judges.prompts import fill_template
from lmms_eval.utils.files import read_plain

OPTION = "judge_prompts"
BUILT_IN = "built-in"
_SHOWN_DIGITS = 16
_ANSWER = "prediction"


class UsedText(Struct, frozen=True):
    """A text that a run gives to the judge."""

    name: str
    text: str
    source: str
    """``built-in`` or the user's file."""
    is_authors: bool

    def filled(self, **values: str) -> str:
        """Return the text with values in its places ``{...}``. The values are not read as templates."""
        return fill_template(self.text, values, f"judge text {self.name}")

    @property
    def short_fingerprint(self) -> str:
        """First 16 digits of the fingerprint."""
        return fingerprint(self.text)[:_SHOWN_DIGITS]

    @property
    def origin(self) -> str:
        """Description of the text's origin."""
        if self.is_authors:
            return "the authors' text"
        whose = "our own wording" if self.source == BUILT_IN else f"a text from {Path(self.source).name}"
        return f"{whose}, not the authors': the number is not the one that reports quote (--judge_prompts)"


class JudgeText(Struct, frozen=True):
    """A text in our own wording, with the fingerprint of the authors' text."""

    name: str
    """In a user's file."""
    wording: str
    authors: str
    """First 16 hexadecimal digits of the SHA-256 of the authors' text."""

    def used(self, settings: Mapping[str, Any] | None) -> UsedText:
        """Return the text for a task with these settings: the user's, or ours if the file lacks it.

        Raises ``DataError`` if the user's file cannot be read, or its text has unknown places or none for the answer.
        """
        file = str((settings or {}).get(OPTION) or "")
        given = texts_of(file).get(self.name) if file else None
        if given is not None:
            self._check_places(given, file)
        text, source = (self.wording, BUILT_IN) if given is None else (given, file)
        return UsedText(self.name, text, source, fingerprint(text).startswith(self.authors))

    def identity(self, settings: Mapping[str, Any] | None) -> str:
        """Return the fingerprint of the text, for ``depends_on``. Raises ``DataError`` as ``used``."""
        return fingerprint(self.used(settings).text)

    def _check_places(self, text: str, file: str) -> None:
        """Check that a text with places has all those that are filled; a text without places is used unchanged."""
        known, where = set(_places(self.wording)), f"judge prompts {file}: {self.name}"
        if not known:
            return
        try:
            found = set(_places(text))
        except ValueError as error:
            raise DataError(f"{where}: {error}; double the braces that are no place") from error
        if unknown := sorted(found - known):
            raise DataError(f"{where}: nothing fills {{{unknown[0]}}}; there is: {', '.join(sorted(known))}")
        if _ANSWER in known - found:
            raise DataError(f"{where} has no place {{{_ANSWER}}}: the judge would see no answer")


def identity(*texts: JudgeText) -> Callable[[Mapping[str, Any] | None], str]:
    """Return what ``depends_on`` takes for scores that depend on these texts."""
    return lambda settings: " ".join(text.identity(settings) for text in texts)


def noted(estimate: Estimate, task: Any, *texts: JudgeText) -> Estimate:
    """Return the estimate with a note and details (``judge_texts``) of the texts that the task's judge was given."""
    used = [text.used(task.prompts.kwargs) for text in texts]
    told = {
        one.name: {"source": one.source, "fingerprint": one.short_fingerprint, "authors": one.is_authors}
        for one in used
    }
    origins: dict[str, list[str]] = {}
    for one in used:
        origins.setdefault(f"({one.short_fingerprint}) is {one.origin}", []).append(one.name)
    notes = [f"judge text {', '.join(names)} {origin}" for origin, names in origins.items()]
    details = {**estimate.details, "judge_texts": told}
    return replace(estimate, details=details, notes=(*estimate.notes, *notes))


def fingerprint(text: str) -> str:
    """Return the SHA-256 of the text's UTF-8 form, hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def texts_of(file: str | Path) -> Mapping[str, str]:
    """Read the texts in a user's file by their names; a file that changed is read again.

    ``NAME.py`` is a Python file, which is parsed and never run: the texts assigned at its top level count. Any other
    file is a JSON object of names and texts. Raises ``DataError`` if the file cannot be read or parsed.
    """
    return _texts_of(str(file), os.stat(file).st_mtime_ns if os.path.exists(file) else 0)


@functools.lru_cache(maxsize=4)
def _texts_of(file: str, changed: int) -> Mapping[str, str]:  # noqa: ARG001 - a changed file is read again
    path = Path(file)
    try:
        content = read_plain(path)
    except OSError as error:
        raise DataError(f"judge prompts {path} cannot be read: {error.strerror or error}") from error
    if path.suffix == ".py":
        return _python_texts(content, path)
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DataError(f"judge prompts {path} are no JSON: {error}") from error
    if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
        raise DataError(f'judge prompts {path} must be a JSON object of texts: {{"NAME": "TEXT", ...}}')
    return found


def _python_texts(content: bytes, path: Path) -> dict[str, str]:
    try:
        tree = ast.parse(content, filename=str(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise DataError(f"judge prompts {path} cannot be parsed as Python: {error}") from error
    found: dict[str, str] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and (text := _constant(statement.value)) is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            found |= {target.id: text for target in targets if isinstance(target, ast.Name)}
    return found


def _constant(value: ast.expr | None) -> str | None:
    """Return a text, or texts joined by plus; ``None`` for any other expression."""
    if isinstance(value, ast.Constant):
        return value.value if isinstance(value.value, str) else None
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        left, right = _constant(value.left), _constant(value.right)
        return None if left is None or right is None else left + right
    return None


def _places(text: str) -> Iterator[str]:
    """Yield the names of the places ``{...}``. Raises ``ValueError`` if braces do not match."""
    return (name for _, name, _, _ in string.Formatter().parse(text) if name is not None)
