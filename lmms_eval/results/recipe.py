"""The part ``recipe`` of a results document: its types, and its lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from lmms_eval.results.certainty import Open
from lmms_eval.utils.names import some_of


class RecipeOverride(Struct, kw_only=True):
    """A value that the run has in place of the recipe's."""

    recipe: Any
    """The recipe's value."""
    run: Any
    """The run's value."""


class RecipePart(Open, kw_only=True):
    """The recipe of a run (``--recipe``)."""

    name: str
    """Name of the recipe."""
    variant: str
    """Its variant; several are joined by ``+``."""
    sha256: str
    """Hash of its file, with those of the files that it builds on."""
    source: dict[str, str]
    """Repository, path, revision and date."""
    sets: dict[str, dict[str, Any]]
    """By task, what it sets: hash of the prompt's layout, system prompt, options, media, reading of answers, judge."""
    differs: dict[str, dict[str, RecipeOverride]]
    """By task and key, what the command line, or the judge, has in place of the recipe."""
    not_stated: dict[str, list[str]]
    """By task: keys that matter for a score and that it does not state."""
    missing: dict[str, dict[str, str]]
    """By task and key: what the model cannot do, with the reason (``--recipe_partial``)."""
    not_covered: list[str]
    """Tasks that it does not cover (``--recipe_partial``)."""


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
