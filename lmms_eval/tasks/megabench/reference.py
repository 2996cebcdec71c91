"""The data set for the stand-alone evaluator, and the check of a submission against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from lmms_eval.tasks.megabench.data import load_rows


class ReferenceTask(Struct, frozen=True):
    """One task of a configuration."""

    name: str
    metric_info: str
    """``metric_info`` of its first row; the same in all rows."""
    contexts: list[str] = field(default_factory=list)
    """``eval_context`` of each row, in order."""
    positions: dict[str, int] = field(default_factory=dict)
    """``id`` -> number of the row within the task."""

    def context(self, query: Mapping[str, Any]) -> str | None:
        """Return the context of a submitted query: by its ``query_idx`` if it has one, else by ``global_idx``.

        ``None`` if the data set has no such query. Both may be numbers or texts.
        """
        position: Any = query.get("query_idx")
        if position is None:
            position = self.positions.get(str(query.get("global_idx")))
        try:
            number = int(position)
        except (TypeError, ValueError):
            return None
        return self.contexts[number] if 0 <= number < len(self.contexts) else None


def load_reference(configuration: str, data_root: str | Path | None = None) -> Mapping[str, ReferenceTask]:
    """Load the tasks of a configuration by name. Raises ``DataError`` as ``load_rows`` does."""
    tasks: dict[str, ReferenceTask] = {}
    for row in load_rows(configuration, data_root):
        name = str(row["task_name"])
        task = tasks.setdefault(name, ReferenceTask(name, str(row["metric_info"])))
        task.positions[str(row["id"])] = len(task.contexts)
        task.contexts.append(row["eval_context"])
    return tasks


class EntryProblem(Struct, frozen=True):
    """A part of a submission that cannot be scored."""

    task_name: str
    error: str


def check(
    entries: Sequence[Mapping[str, Any]], tasks: Mapping[str, ReferenceTask]
) -> tuple[list[EntryProblem], set[int]]:
    """Compare a submission with the data set that it answers.

    Returns the problems, and the positions of the entries that are not scored.
    """
    problems: list[EntryProblem] = []
    refused: set[int] = set()
    first: dict[str, int] = {}
    for position, entry in enumerate(entries):
        name = entry["task_name"]
        errors: list[str] = []
        if name not in tasks:
            errors.append("the data set has no such task in this subset")
        elif name in first:
            errors.append(f"entry {position} repeats entry {first[name]}; the first one counts")
        else:
            first[name] = position
            errors += _query_errors(entry.get("query_response"), tasks[name])
        problems += [EntryProblem(name, error) for error in errors]
        if errors:
            refused.add(position)
    return problems, refused


def _query_errors(queries: Any, task: ReferenceTask) -> list[str]:
    if not isinstance(queries, list):
        return [f"query_response must be a list, not {type(queries).__name__}"]
    errors: list[str] = []
    seen: set[str] = set()
    for number, query in enumerate(queries):
        where = f"query {number}"
        if not isinstance(query, Mapping):
            errors.append(f"{where} is no object")
            continue
        where += f" (global_idx {query.get('global_idx')!r})"
        if not isinstance(query.get("correct_answer"), Mapping):
            errors.append(f"{where}: no correct_answer with fields")
        if not isinstance(query.get("response", ""), str | None):
            errors.append(f"{where}: response must be a text, not {type(query['response']).__name__}")
        if task.context(query) is None:
            errors.append(f"{where} is not in the data set: is the submission for another subset?")
        place = str(query.get("query_idx", query.get("global_idx")))
        if place in seen:
            errors.append(f"{where} occurs twice")
        seen.add(place)
    return errors
