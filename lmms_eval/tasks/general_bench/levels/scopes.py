"""Scopes of the leaderboards (General-Bench specification §1, §10.9).

A: everything. B: one or more modalities. C: one paradigm of one modality. D: one skill.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from lmms_eval.errors import UnknownNameError, UsageError
from lmms_eval.tasks.general_bench.facts import LANGUAGE, MODALITIES, TaskFacts, sheets, skills

_FORMS = "A, B:MODALITY[+MODALITY...], C:MODALITY-PARADIGM, D:SKILL"


class Scope(Struct, frozen=True):
    """The rows that count and the levels that the scope has."""

    name: str
    rows: Mapping[str, tuple[TaskFacts, ...]]
    """Rows by sheet."""
    levels: tuple[int, ...]


def find_scope(text: str) -> Scope:
    """Find the scope of a name, in any case.

    Raises:
        UsageError: the scope is unknown, or of language alone, which has no levels.
    """
    letter, _, what = (part.strip() for part in text.partition(":"))
    match letter.upper():
        case "A" if not what:
            return Scope("A", sheets(), (2, 3, 4, 5))
        case "B" if what:
            names = [_known("modality", name.strip(), (*MODALITIES, LANGUAGE)) for name in what.split("+")]
            if set(names) == {LANGUAGE}:
                raise UsageError(f"scope B:{what}: {LANGUAGE} has no levels of its own; it enters level 5 of scope A")
            rows = {name: tasks for name, tasks in sheets().items() if name.split("-")[0] in names}
            return Scope(f"B:{'+'.join(names)}", rows, (2, 3, 4, 5) if LANGUAGE in names else (2, 3, 4))
        case "C" if what:
            name = _known("sheet", what, [name for name in sheets() if name != LANGUAGE])
            return Scope(f"C:{name}", {name: sheets()[name]}, (2, 3))
        case "D" if what:
            code = _known("skill", what, tuple(skills()))
            found = {name: tuple(task for task in tasks if task.skill == code) for name, tasks in sheets().items()}
            rows = {name: tasks for name, tasks in found.items() if tasks}
            if LANGUAGE in rows:
                raise UsageError(f"scope D:{code}: a skill of {LANGUAGE}, which has no levels of its own")
            return Scope(f"D:{code}", rows, (2, 3))
    raise UsageError(f"scope {text!r}: give {_FORMS}")


def _known(kind: str, name: str, names: tuple[str, ...] | list[str]) -> str:
    for one in names:
        if one.casefold() == name.casefold():
            return one
    raise UnknownNameError(kind, name, names, f"(one of {len(names)}: {', '.join(names[:9])})")
