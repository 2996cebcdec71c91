"""The part ``recipe`` of a results document as lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.utils.names import some_of

OWN_JUDGE = "judge.model"
SHOWN = 8
"""Most tasks that a line names."""


def recipe_title(part: Mapping[str, Any]) -> str:
    """Return ``NAME:VARIANT (sha256 FIRST DIGITS)``."""
    return f"{part.get('name')}:{part.get('variant')} (sha256 {str(part.get('sha256'))[:12]})"


def recipe_lines(part: Mapping[str, Any]) -> list[str]:
    """Return lines about the recipe of a run: its name, what differs, what is missing, and what it does not state."""
    lines = [f"recipe: {recipe_title(part)}"]
    differs = {
        task: [_difference(key, entry) for key, entry in entries.items()]
        for task, entries in part.get("differs", {}).items()
    }
    lines += _by_tasks("differs from the recipe", differs)
    missing = {
        task: [f"{key} ({why})" for key, why in found.items()] for task, found in part.get("missing", {}).items()
    }
    lines += _by_tasks("missing of the recipe", missing)
    lines += _by_tasks("not stated by the recipe, so as the task or the back end has it", part.get("not_stated", {}))
    if others := part.get("not_covered"):
        lines.append(f"not covered by the recipe, asked with their own settings: {some_of(others, SHOWN)}")
    return lines


def _difference(key: str, entry: Mapping[str, Any]) -> str:
    recipe, run = entry.get("recipe"), entry.get("run")
    if key == OWN_JUDGE:
        return f"judge: {run or 'none'} (recipe: {recipe or 'none'})"
    return f"{key}: {_short(run)} (recipe: {_short(recipe)})"


def _short(value: Any) -> str:
    return f"{value!r:.60}" if isinstance(value, str) else f"{value}"


def _by_tasks(head: str, found: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a line for each list, with the names of the tasks that share it."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for task, items in found.items():
        if items:
            alike.setdefault(tuple(items), []).append(task)
    return [f"{head} ({some_of(tasks, SHOWN)}): {'; '.join(items)}" for items, tasks in alike.items()]
