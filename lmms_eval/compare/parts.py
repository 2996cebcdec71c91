"""The parts into which a metadata column divides the documents of two runs, each with its difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from lmms_eval.compare.differences import Found, find_difference
from lmms_eval.compare.judging import judge_family
from lmms_eval.compare.matching import MatchedPair, PairedColumn
from lmms_eval.compare.options import CompareOptions
from lmms_eval.compare.pairing import Shared
from lmms_eval.compare.runs import TaskRows
from lmms_eval.compare.verdicts import Difference
from lmms_eval.errors import UsageError
from lmms_eval.results.cells import FEW, Division, divides

MOST_CELLS = 1_000
"""Values of a metadata column that still divide documents rather than name them."""
ABSENT = "(none)"
"""Name of the cell of documents without a value."""


def compare_parts(pairs: Sequence[MatchedPair], name: str, options: CompareOptions) -> list[list[Difference]]:
    """Find the differences of the parts into which a metadata column divides the documents, for each pair.

    They are one family: p is corrected over all of them.

    Raises:
        UsageError: no task has such a column, or a task has too many values of it.
    """
    found = [[one for part in _by_task(pair) for one in _parts_of(part, name, options)] for pair in pairs]
    if not any(found):
        columns = sorted({column for task in _tasks(pairs) for column in task.metadata()})
        raise UsageError(f"--by {name}: no task has such a column; they have: {', '.join(columns) or 'none'}")
    judged = iter(judge_family([one for rows in found for one in rows], options))
    return [[next(judged) for _ in rows] for rows in found]


def dividing_columns(pairs: Sequence[MatchedPair]) -> dict[str, int]:
    """Find the metadata columns with a few short values in every task that has them.

    Returns:
        The greatest number of parts that each may give, over all pairs.
    """
    values = {id(task): _few_values(task) for task in _tasks(pairs)}
    found: dict[str, int] = {}
    refused = set()
    for pair in pairs:
        for column in pair.columns:
            sides = values[id(column.shared.first)], values[id(column.shared.second)]
            for name in dict.fromkeys((*sides[0], *sides[1])):
                counts = [count for side in sides if (count := side.get(name, 0)) is not None]
                if len(counts) < len(sides):
                    refused.add(name)
                found[name] = found.get(name, 0) + max(counts, default=0)
    divided = {name for side in values.values() for name, count in side.items() if count is not None and count > 1}
    return {name: count for name, count in found.items() if name in divided - refused}


def _few_values(task: TaskRows) -> dict[str, int | None]:
    """Count the values of a task's metadata columns; ``None``: they do not divide its documents."""
    found: dict[str, int | None] = {}
    for column, values in task.metadata().items():
        names = {ABSENT if value is None else value for value in values}
        found[column] = len(names) if len(names) == 1 or divides(names) else None
    return found


def _tasks(pairs: Sequence[MatchedPair]) -> list[TaskRows]:
    tasks = [task for pair in pairs for one in pair.columns for task in (one.shared.first, one.shared.second)]
    return list({id(task): task for task in tasks}.values())


def _by_task(pair: MatchedPair) -> Iterator[list[PairedColumn]]:
    for _, columns in groupby(pair.columns, key=lambda column: id(column.shared)):
        yield list(columns)


def _values(shared: Shared, name: str) -> list[str | None] | None:
    """Values of the shared documents in a metadata column; where both runs have it, the first one's."""
    for task, rows in ((shared.first, shared.first_rows), (shared.second, shared.second_rows)):
        if (values := task.metadata().get(name)) is not None:
            return [values[row] for row in rows]
    return None


def _parts_of(columns: Sequence[PairedColumn], name: str, options: CompareOptions) -> Iterator[Found]:
    """Yield the parts of the columns of one task."""
    values = _values(columns[0].shared, name)
    if values is None:
        return
    division = Division.of(name, [ABSENT if value is None else value for value in values])
    if len(division.values) > MOST_CELLS:
        raise UsageError(
            f"--by {name}: {len(division.values)} different values in {columns[0].task}; choose a column that divides "
            f"documents into at most {MOST_CELLS} parts"
        )
    for column in columns:
        for code, part in enumerate(division.values):
            found = find_difference(column, options, division.codes == code)
            if found is not None:
                few = (f"few documents (below {FEW})",) if found.row.pairing.paired < FEW else ()
                yield replace(found, row=replace(found.row, cell=part, notes=(*found.row.notes, *few)))
