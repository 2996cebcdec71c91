"""Reading a submission file, and finding what is wrong with it before anything is scored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval.errors import DataError
from lmms_eval.tasks.megabench.reference import ReferenceTask


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a submission that cannot be scored; the rest is."""

    task_name: str
    error: str

    def as_dict(self) -> dict[str, str]:
        return {"task_name": self.task_name, "error": self.error}


@dataclass(frozen=True, slots=True)
class Checked:
    """A submission with the problems of its entries."""

    entries: tuple[Mapping[str, Any], ...]
    problems: tuple[Problem, ...]
    refused: frozenset[int]
    """Positions of the entries that are not scored."""


def read_submission(path: Path) -> list[Mapping[str, Any]]:
    """The entries of a submission file.

    Raises:
        DataError: it cannot be read, is cut short, or is no list of tasks.
    """
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise DataError(f"submission {path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"submission {path} is no complete JSON file: {error}; was the run that wrote it interrupted?"
        ) from error
    if not isinstance(content, list):
        raise DataError(f"submission {path} must hold a list of tasks, not {type(content).__name__}")
    for position, entry in enumerate(content):
        if not isinstance(entry, Mapping) or not isinstance(entry.get("task_name"), str):
            raise DataError(f"submission {path}: entry {position} is no object with a task_name")
    return content


def check(entries: Sequence[Mapping[str, Any]], tasks: Mapping[str, ReferenceTask]) -> Checked:
    """Compare a submission with the data set it is said to answer."""
    problems: list[Problem] = []
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
        problems += [Problem(name, error) for error in errors]
        if errors:
            refused.add(position)
    return Checked(tuple(entries), tuple(problems), frozenset(refused))


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
            errors.append(f"{where} stands twice")
        seen.add(place)
    return errors
