"""Profile ``paper``: General-Level as the paper describes it (arXiv 2505.04620), on sound specialist scores.

``levels.reference`` lists the differences of the reference. Here rows are found by task names, metrics by any of their
spellings. Both sides are mapped and clipped. A task without a score counts as 0 and never wins. A lower-is-better value
of 0 is perfect. Level 4 has no epsilon (General-Bench specification §10).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from msgspec.structs import asdict

from lmms_eval.errors import DataError, UnknownNameError
from lmms_eval.tasks.general_bench.facts import LANGUAGE, TaskFacts, find_task, sheets
from lmms_eval.tasks.general_bench.facts.metrics import Metric, find_metric, metrics
from lmms_eval.tasks.general_bench.levels.formulas import GroupMeans, combine, mean_of_rows, paper_score
from lmms_eval.tasks.general_bench.levels.report import Entry, LanguageReport, ModalityReport, Ranked, Support
from lmms_eval.tasks.general_bench.levels.scopes import Scope, find_scope
from lmms_eval.tasks.general_bench.levels.tables import SPECIALIST_COLUMN, Row, Table, column, exact_number


def rank_paper(
    model: str, table: Table, scope: Scope | None = None, other: Table | None = None, wer_in_percent: bool = False
) -> Ranked:
    """Rank a column of a result table.

    Args:
        other: a specialists' table in place of the shipped one. Cells equal to a published score take its correction.

    Raises:
        DataError: no sheet has the model's column.
    """
    scope = scope or find_scope("A")
    found, faults = read_values(model, table, scope, wer_in_percent)
    specialists, problems = _specialists(scope, other)
    entries = _entries(found, specialists, scope)
    levels = combine({name: group_means(rows) for name, rows in entries.items()})
    modalities = {}
    for modality, scores in levels.modalities.items():
        parts = [entries.get(f"{modality}-{part}", ()) for part in ("Comprehension", "Generation")]
        modalities[modality] = ModalityReport(
            **asdict(scores),
            comprehension_rows=len(parts[0]),
            generation_rows=len(parts[1]),
            support=support((*parts[0], *parts[1])),
        )
    language = entries.get(LANGUAGE)
    return Ranked(
        model=model,
        profile="paper",
        scope=scope.name,
        modalities=modalities,
        language=LanguageReport(support(language), levels.language) if language else None,
        levels={level: levels.final[level] for level in scope.levels},
        epsilon=0.0,
        entries=entries,
        problems=(*faults, *problems),
        warnings=tuple(unit_warnings(found)),
    )


def final_levels(scores: Mapping[TaskFacts, float]) -> Mapping[int, float]:
    """Return the levels of a model with these scores, in the units of the result table. Missing scores count as 0."""
    given = {task.sheet for task in scores}
    means = {
        name: group_means(
            [_entry(task, scores[task], entry.raw_specialist) if task in scores else entry for task, entry in rows]
        )
        if name in given
        else GroupMeans(0.0, 0.0)
        for name, rows in _unscored_entries().items()
    }
    return combine(means).final


@functools.cache
def _unscored_entries() -> Mapping[str, Sequence[tuple[TaskFacts, Entry]]]:
    """Return the entries, by sheet, of a model without scores."""
    scope = find_scope("A")
    entries = _entries({}, _specialists(scope, None)[0], scope)
    return {name: list(zip(rows, entries[name], strict=True)) for name, rows in scope.rows.items()}


def _entries(
    scores: Mapping[TaskFacts, float], specialists: Mapping[TaskFacts, float], scope: Scope
) -> dict[str, tuple[Entry, ...]]:
    return {
        name: tuple(_entry(task, scores.get(task), specialists[task]) for task in rows)
        for name, rows in scope.rows.items()
    }


def read_values(
    model: str, table: Table, scope: Scope, wer_in_percent: bool
) -> tuple[dict[TaskFacts, float], list[str]]:
    """Read the model's scores by task, and the problems with unusable ones, which count as missing.

    Raises:
        DataError: no sheet has the model's column.
    """
    reader = _Reader(table, wer_in_percent)
    readable = [name for name in scope.rows if reader.read_sheet(name, model)]
    if not readable:
        raise DataError(f"{table.source}: nothing to rank. {'; '.join(reader.problems)}")
    unknown = [name for name in table.task_sheets if name not in sheets()]
    reader.problems += [f"sheet {name!r}: no sheet of the benchmark; it is passed over" for name in unknown]
    in_scope = {task for rows in scope.rows.values() for task in rows}
    return {task: score for task, score in reader.scores.items() if task in in_scope}, reader.problems


class _Reader:
    """Collects the scores of a table sheet by sheet."""

    def __init__(self, table: Table, wer_in_percent: bool) -> None:
        self.table, self.wer_in_percent = table, wer_in_percent
        self.scores: dict[TaskFacts, float] = {}
        self.problems: list[str] = []

    def read_sheet(self, name: str, model: str) -> bool:
        """Read a sheet. Return false if it is missing or lacks the model's column."""
        sheet = self.table.task_sheets.get(name)
        if sheet is None:
            self.problems.append(f"sheet {name} is missing: its {len(sheets()[name])} tasks count as missing")
            return False
        try:
            rows = column(sheet, f"sheet {name}", model)
        except DataError as error:
            self.problems.append(f"{error}; its {len(sheets()[name])} tasks count as missing")
            return False
        given: dict[TaskFacts, list[int]] = {}
        for place, row in enumerate(rows):
            self._read_row(name, place, row, given)
        for task, places in given.items():
            if len(places) > 1:
                where = ", ".join(str(place + 2) for place in places)
                self.problems.append(f"sheet {name}, {task.name!r} stands in rows {where}: counts as missing")
                self.scores.pop(task, None)
        return True

    def _read_row(self, sheet: str, place: int, row: Row, given: dict[TaskFacts, list[int]]) -> None:
        try:
            value = exact_number(row.cell)
            if not row.name and value is None:
                return
            task = find_task(row.name)
            if task.sheet != sheet:
                raise DataError(f"this task belongs to sheet {task.sheet}")
            given.setdefault(task, []).append(place)
            if value is not None:
                self.scores[task] = checked(task, row.metric, value, self.wer_in_percent)
        except (DataError, UnknownNameError) as error:
            self.problems.append(f"sheet {sheet}, row {place + 2} ({row.name!r}): {error}")


def checked(task: TaskFacts, spelling: str, value: float, wer_in_percent: bool = False) -> float:
    """Check a value of a task's row, in the unit of the row.

    Raises:
        DataError: it is of another metric than the row's, or outside the metric's range.
        UnknownNameError: an unknown metric.
    """
    metric = metrics()[task.metric]
    if spelling != task.spelling and find_metric(spelling).key != metric.key:
        raise DataError(f"a score by {spelling!r}, where the benchmark asks for {task.spelling!r}")
    if metric.key == "wer" and wer_in_percent:
        value /= 100
    check_range(metric, value)
    return value


def check_range(metric: Metric, value: float) -> None:
    """Refuse values outside the metric's range.

    Raises:
        DataError: the value is outside the metric's range.
    """
    if not metric.low <= value <= metric.high:
        raise DataError(f"{value} is outside the range of {metric.spellings[0]} ({metric.low:g} to {metric.high:g})")


def unit_warnings(scores: Mapping[TaskFacts, float]) -> list[str]:
    """Warn about values that seem to be in another unit. No value is converted."""
    found = []
    percent = {key for key, metric in metrics().items() if metric.unit == "percent"}
    language = [score for task, score in scores.items() if task.sheet == LANGUAGE and task.metric in percent]
    if language and max(language) <= 1 and any(language):
        found.append(f"all {len(language)} NLP scores lie between 0 and 1, and are read as percentages")
    rates = [score for task, score in scores.items() if task.metric == "wer" and score > 1]
    if rates:
        found.append(
            f"{len(rates)} word error rates are above 1, and are read as fractions (or say --wer_unit percent)"
        )
    return found


def _specialists(scope: Scope, other: Table | None) -> tuple[dict[TaskFacts, float], list[str]]:
    """Return the corrected specialist scores, unmapped, of the scope's tasks."""
    found = {task: task.sound_specialist for rows in scope.rows.values() for task in rows}
    if other is None:
        return found, []
    problems = []
    for name, rows in scope.rows.items():
        if name not in other.task_sheets:
            raise DataError(f"{other.source}: no sheet {name}; give a specialists' table of the benchmark")
        listed = column(other.task_sheets[name], f"{other.source}, sheet {name}", SPECIALIST_COLUMN)
        given = {_folded(row.name): row for row in listed}
        for task in rows:
            row = given.get(task.name)
            try:
                value = exact_number(row.cell) if row else None
            except DataError as error:
                value, why = None, str(error)
            else:
                why = "no score"
            if value is None:
                problems.append(f"{other.source}, sheet {name}, {task.name!r}: {why}; the shipped score is taken")
            else:
                found[task] = task.sound_specialist if value == task.specialist else value
    return found, problems


def _folded(name: str) -> str:
    try:
        return find_task(name).name
    except UnknownNameError:
        return name


@functools.lru_cache(maxsize=4096)
def _mapped_specialist(key: str, value: float) -> float:
    return paper_score(metrics()[key], value)


def _entry(task: TaskFacts, value: float | None, specialist: float) -> Entry:
    mapped = _mapped_specialist(task.metric, specialist)
    score = None if value is None else paper_score(metrics()[task.metric], value)
    return Entry(
        sheet=task.sheet,
        task=task.name,
        metric=task.metric,
        raw=value,
        score=score,
        raw_specialist=specialist,
        specialist=mapped,
        won=score is not None and score >= mapped,
    )


def group_means(entries: Sequence[Entry]) -> GroupMeans:
    """Compute a sheet's mean over all rows, and with only won rows counted."""
    return GroupMeans(
        mean_of_rows([entry.counted for entry in entries]), mean_of_rows([entry.winning for entry in entries])
    )


def support(entries: Sequence[Entry]) -> Support:
    """Count supported tasks (scores above zero) and wins."""
    return Support(
        sum(entry.score is not None and entry.score > 0 for entry in entries),
        len(entries),
        sum(entry.won for entry in entries),
    )
