"""Plain tables (CSV, TSV): an id and a score in each row, and what else is known of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from lmms_eval.api.outcome import Status
from lmms_eval.compare.readers.building import NO_FILTER, Lookups, TaskBuilder
from lmms_eval.compare.readers.contract import Format, Looked
from lmms_eval.compare.readers.tables import WORKBOOK, Table, TableRow, number_of, open_table
from lmms_eval.compare.runs import Answer, RunRows, TaskRows
from lmms_eval.errors import DataError
from lmms_eval.results.run_reader.metadata import metadata_of
from lmms_eval.results.run_reader.sample import finite

KIND = "table"
_IDS = ("id", "doc_id", "sample_id", "index")
"""Names of the column of ids; the first that is there."""
_KNOWN = frozenset({"score", "cluster", "task", "status", "hash", "metric", "answer", "target", *_IDS})
_STATUSES: Mapping[str, Status] = {"scored": "scored", "unscored": "unscored", "failed": "failed"}


def fits(columns: Sequence[str]) -> bool:
    return "score" in columns and any(name in columns for name in _IDS)


def is_table(looked: Looked) -> bool:
    return _open(looked) is not None


def _open(looked: Looked) -> Table | None:
    is_workbook = WORKBOOK in looked.members
    return None if looked.members and not is_workbook else open_table(looked.path, is_workbook, fits)


def read_table(path: Path) -> RunRows:
    """Read a table with the columns ``id`` and ``score``; ``cluster``, ``task``, ``status``, ``hash``, ``metric``,
    ``answer`` and ``target`` are taken for what they say, any other is metadata.

    Raises:
        DataError: a row has no id, or a status that is none.
    """
    table = _open(Looked(path))
    if table is None:
        raise DataError(f"{path}: no columns id and score")
    id_column = next(name for name in _IDS if name in table.columns)
    tasks: dict[str, _Task] = {}
    for row in table.rows():
        name = row.values.get("task") or path.stem
        if name not in tasks:
            tasks[name] = _Task(TaskBuilder(name), table, path.stem, id_column, not row.values.get("task"))
        tasks[name].add(row)
    return RunRows(
        name=path.stem,
        source=str(path),
        kind=KIND,
        tasks={name: task.rows() for name, task in tasks.items()},
        notes=tuple(note for task in tasks.values() for note in task.builder.notes),
    )


@dataclass(slots=True)
class _Task:
    """The rows of one task of a table."""

    builder: TaskBuilder
    table: Table
    default: str
    """Name of the task where a row has none."""
    id_column: str
    is_called_after_file: bool
    metrics: dict[str, set[int]] = field(default_factory=dict)
    """Rows that have a score, by metric."""

    def add(self, row: TableRow) -> None:
        values = row.values
        where = f"{self.table.path}, line {row.line}"
        doc_id = values.get(self.id_column, "")
        if not doc_id:
            raise DataError(f"{where}: no {self.id_column}")
        stated = values.get("status", "").strip().lower()
        if stated and stated not in _STATUSES:
            raise DataError(f"{where}: status {stated!r:.40}; give scored, unscored or failed, or leave it empty")
        number = self.builder.row(doc_id)
        metric = values.get("metric") or "score"
        seen = self.metrics.setdefault(metric, set())
        if number in seen:
            self.builder.pass_over("further rows of documents that were there already: the first counts")
            return
        seen.add(number)
        self.builder.end(number, self._score(number, metric, values.get("score", ""), stated))
        self.builder.describe(number, values.get("hash"), values.get("cluster") or None)

    def _score(self, row: int, metric: str, text: str, stated: str) -> Status:
        score = finite(number_of(text))
        is_scored = _STATUSES.get(stated, "scored") == "scored"
        self.builder.score(row, metric, NO_FILTER, score if is_scored else None)
        if not is_scored:
            return _STATUSES[stated]
        if score is None:
            self.builder.pass_over(f"values of {metric} that are no finite number: unscored")
        return "unscored" if score is None else "scored"

    def rows(self) -> TaskRows:
        self.builder.states_filter = False

        @cache
        def answers() -> dict[int, Answer]:
            found: dict[int, Answer] = {}
            for number, values in self._values():
                found.setdefault(number, Answer(values.get("answer", ""), values.get("target", "")))
            return found

        def fields() -> Iterator[tuple[int, Mapping[str, str]]]:
            for number, values in self._values():
                yield number, {name: text for name, text in values.items() if name not in _KNOWN}

        rows = self.builder.rows(
            Lookups(
                cache(lambda: metadata_of(len(self.builder.ids), fields())),
                (lambda row: answers().get(row)) if "answer" in self.table.columns else (lambda _: None),
            )
        )
        return replace(rows, is_called_after_file=self.is_called_after_file)

    def _values(self) -> Iterator[tuple[int, Mapping[str, str]]]:
        for row in self.table.rows():
            if (row.values.get("task") or self.default) == self.builder.task:
                yield self.builder.row(row.values[self.id_column]), row.values


TABLES = Format("a table (CSV, TSV, xlsx) with the columns id and score", is_table, read_table)
