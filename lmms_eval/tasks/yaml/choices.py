"""The choices of a document, by the key ``choices``: counts them, rotates them, or removes their question."""

from __future__ import annotations

import ast
import contextlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from lmms_eval.errors import TaskError, UsageError

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ROTATION, NO_QUESTION = "rotation-", "no-question"
"""Names of document changes, as they appear in task names and in descriptions for scoring processes."""
FORMS = ("letter", "number", "text")
KEYS = ("options", "answer", "form", "question")
_LABEL = re.compile(r"\(?([A-Za-z])[).:]\s*")
_ABSENT = frozenset({"", "nan", "none", "n/a"})

Row = Mapping[str, Any]


class ChoiceColumns(Struct, frozen=True):
    """Columns of a document's choices.

    Raises ``TaskError`` if a key is missing, unknown, or has a value that it cannot have.
    """

    columns: tuple[str, ...]
    """A column for each option, or one column that holds them all, as a list or as the text of a list."""
    is_list: bool
    answer: str
    form: Literal["letter", "number", "text"]
    """How the column ``answer`` names the right option: by letter, by number from 0, or by text."""
    question: tuple[str, ...] = ()

    @classmethod
    def of(cls, stated: Mapping[str, Any], where: str) -> ChoiceColumns:
        """Read the key ``choices`` of a task."""
        unknown = sorted(set(stated) - set(KEYS))
        if unknown or "options" not in stated or "answer" not in stated:
            problem = f"unknown key {unknown[0]!r}" if unknown else "options and answer name columns of the document"
            raise TaskError(f"{where}: key 'choices': {problem}; it takes {', '.join(KEYS)} (docs/task_guide.md)")
        options, question, form = stated["options"], stated.get("question", ()), stated.get("form", "letter")
        if form not in FORMS:
            raise TaskError(f"{where}: key 'choices': form {form!r}: give {', '.join(FORMS)}")
        is_list = isinstance(options, str)
        columns = (options,) if is_list else tuple(map(str, options))
        asked = (question,) if isinstance(question, str) else tuple(map(str, question))
        return cls(columns, is_list, str(stated["answer"]), form, asked)

    @property
    def used(self) -> tuple[str, ...]:
        """All columns that a change reads or writes."""
        return tuple(dict.fromkeys((*self.columns, self.answer, *self.question)))

    def options(self, row: Row) -> list[Any]:
        """Return the options in order; empty if the document has none."""
        if not self.is_list:
            values = [row.get(name) for name in self.columns]
            while values and str(values[-1]).strip().casefold() in _ABSENT:
                values.pop()
            return values
        found = _read(row.get(self.columns[0]), json.loads, ast.literal_eval)
        return list(found) if isinstance(found, Sequence) and not isinstance(found, str) else []

    def rotations(self, row: Row) -> int:
        """Return the number of rotations: the number of choices, or 1 if the answer is not among them."""
        options = self.options(row)
        return len(options) if len(options) > 1 and self.right(row, options) is not None else 1

    def right(self, row: Row, options: Sequence[Any]) -> int | None:
        """Return the number of the right option, from 0; ``None`` if the answer names no option."""
        answer = row.get(self.answer)
        if self.form == "text":
            matching = [place for place, option in enumerate(options) if str(option) == str(answer)]
            return matching[0] if matching else None
        stated = str(answer).strip()
        if self.form == "number":
            place = int(stated) if stated.isdecimal() else -1
        else:
            letter = stated.strip("() .").upper()
            place = LETTERS.find(letter) if len(letter) == 1 else -1
        return place if 0 <= place < len(options) else None

    def rotated(self, row: Row, by: int) -> dict[str, Any]:
        """Return the row with its options moved forward by ``by`` places, and the answer with them.

        Labels (``A.``, ``(B)``) that all options have keep their places. A row without choices is returned unchanged.
        """
        options = self.options(row)
        right = self.right(row, options)
        if right is None or len(options) < 2:
            return dict(row)
        turn = by % len(options)
        made = _turned(options, turn)
        changed = dict(row)
        if self.is_list:
            held = row[self.columns[0]]
            changed[self.columns[0]] = made
            if isinstance(held, str):  # a text in the same form: JSON, else Python
                is_json = _read(held, json.loads) is not None
                changed[self.columns[0]] = json.dumps(made, ensure_ascii=False) if is_json else repr(list(made))
        else:
            changed |= dict(zip(self.columns, made, strict=False))
        place = (right - turn) % len(options)
        if self.form == "text":
            changed[self.answer] = made[place]
        else:
            changed[self.answer] = _renamed(row[self.answer], place, self.form)
        return changed

    def unasked(self, row: Row) -> dict[str, Any]:
        """Return the row without its question."""
        return {**row, **dict.fromkeys((name for name in self.question if name in row), "")}


def changed_row(columns: ChoiceColumns, change: str, row: Row) -> dict[str, Any]:
    """Apply the change of that name to a row: ``rotation-K`` or ``no-question``.

    Raises ``UsageError`` if there is no such change.
    """
    if change == NO_QUESTION:
        return columns.unasked(row)
    number = change.removeprefix(ROTATION)
    if change == number or not number.isdecimal():
        raise UsageError(f"there is no change of documents {change!r}")
    return columns.rotated(row, int(number))


def _read(value: Any, *readers: Callable[[str], Any]) -> Any:
    """Return the value of a text by the first reader that can read it, or ``None``; any other value unchanged."""
    if not isinstance(value, str):
        return value
    for read in readers:
        with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return read(value)
    return None


def _turned(options: Sequence[Any], turn: int) -> list[Any]:
    labels = [_LABEL.match(option) if isinstance(option, str) else None for option in options]
    if not all(label and label[1].upper() == letter for label, letter in zip(labels, LETTERS, strict=False)):
        return [*options[turn:], *options[:turn]]
    bodies = [option[label.end() :] for option, label in zip(options, labels, strict=True) if label]
    heads = [label[0] for label in labels if label]
    return [head + body for head, body in zip(heads, [*bodies[turn:], *bodies[:turn]], strict=True)]


def _renamed(answer: Any, place: int, form: str) -> Any:
    """Return the answer for another option, in the form of ``answer`` (``"C"``, ``"(c)"``, ``2``, ``"2"``)."""
    if form == "number":
        return str(place) if isinstance(answer, str) else place
    old = next(sign for sign in str(answer) if sign.isalpha())
    new = LETTERS[place] if old.isupper() else LETTERS[place].lower()
    return str(answer).replace(old, new, 1)
