"""Profile ``paper``: General-Level as the paper describes it (arXiv 2505.04620), on sound specialist scores.

``levels.reference`` lists the differences of the reference. Here rows are found by task names, metrics by any of their
spellings. Both sides are mapped and clipped. A task without a score counts as 0 and never wins. A lower-is-better value
of 0 is perfect. Level 4 has no epsilon (General-Bench specification §10).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping, Sequence

from msgspec import Struct

from lmms_eval.errors import DataError, UnknownNameError, UsageError
from lmms_eval.tasks.general_bench.facts import (
    LANGUAGE,
    MODALITIES,
    TaskFacts,
    find_metric,
    find_task,
    metrics,
    sheets,
    skills,
)
from lmms_eval.tasks.general_bench.levels.formulas import GroupMeans, combine, mean_of_rows, paper_score
from lmms_eval.tasks.general_bench.levels.report import Entry, LanguageReport, Ranked, Support, modality_reports
from lmms_eval.tasks.general_bench.levels.tables import SPECIALIST_COLUMN, LevelRow, Table, column, exact_number

_FORMS = "A, B:MODALITY[+MODALITY...], C:MODALITY-PARADIGM, D:SKILL"


class Scope(Struct, frozen=True):
    """The rows that count and the levels that a leaderboard's scope has (General-Bench specification §1, §10.9).

    A: everything. B: one or more modalities. C: one paradigm of one modality. D: one skill.
    """

    name: str
    rows: Mapping[str, tuple[TaskFacts, ...]]
    """Rows by sheet."""
    levels: tuple[int, ...]


def find_scope(text: str) -> Scope:
    """Find the scope of a name, in any case.

    Raises ``UsageError`` if the scope is unknown, or of language alone, which has no levels.
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
    supports = {
        name: Support(
            sum(entry.score is not None and entry.score > 0 for entry in rows),
            len(rows),
            sum(entry.won for entry in rows),
        )
        for name, rows in entries.items()
    }
    language = LanguageReport(supports[LANGUAGE], levels.language) if entries.get(LANGUAGE) else None
    return Ranked(
        model=model,
        profile="paper",
        scope=scope.name,
        modalities=modality_reports(levels, entries, supports),
        language=language,
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

    Raises ``DataError`` if no sheet has the model's column.
    """
    scores: dict[TaskFacts, float] = {}
    problems: list[str] = []
    unread = 0
    for name in scope.rows:
        loss = f"its {len(sheets()[name])} tasks count as missing"
        if name not in table.task_sheets:
            problems.append(f"sheet {name} is missing: {loss}")
            unread += 1
            continue
        try:
            rows = column(table.task_sheets[name], f"sheet {name}", model)
        except DataError as error:
            problems.append(f"{error}; {loss}")
            unread += 1
            continue
        scores |= _sheet_values(name, rows, wer_in_percent, problems)
    if unread == len(scope.rows):
        raise DataError(f"{table.source}: nothing to rank. {'; '.join(problems)}")
    unknown = [name for name in table.task_sheets if name not in sheets()]
    problems += [f"sheet {name!r}: no sheet of the benchmark; it is passed over" for name in unknown]
    in_scope = {task for rows in scope.rows.values() for task in rows}
    return {task: score for task, score in scores.items() if task in in_scope}, problems


def _sheet_values(
    sheet: str, rows: Sequence[LevelRow], wer_in_percent: bool, problems: list[str]
) -> dict[TaskFacts, float]:
    """Read the scores of a sheet. A task in several rows has none."""
    scores: dict[TaskFacts, float] = {}
    places: dict[TaskFacts, list[int]] = {}
    for place, row in enumerate(rows, start=2):
        try:
            value = exact_number(row.cell)
            if not row.name and value is None:
                continue
            task = find_task(row.name)
            if task.sheet != sheet:
                raise DataError(f"this task belongs to sheet {task.sheet}")
            places.setdefault(task, []).append(place)
            if value is not None:
                scores[task] = checked(task, row.metric, value, wer_in_percent)
        except (DataError, UnknownNameError) as error:
            problems.append(f"sheet {sheet}, row {place} ({row.name!r}): {error}")
    for task, found in places.items():
        if len(found) > 1:
            where = ", ".join(map(str, found))
            problems.append(f"sheet {sheet}, {task.name!r} stands in rows {where}: counts as missing")
            scores.pop(task, None)
    return scores


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
    if not metric.low <= value <= metric.high:
        raise DataError(f"{value} is outside the range of {metric.spellings[0]} ({metric.low:g} to {metric.high:g})")
    return value


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
        given = {}
        for row in listed:
            with contextlib.suppress(UnknownNameError):
                given[find_task(row.name)] = row
        for task in rows:
            found_row = given.get(task)
            try:
                value = exact_number(found_row.cell) if found_row else None
            except DataError as error:
                value, why = None, str(error)
            else:
                why = "no score"
            if value is None:
                problems.append(f"{other.source}, sheet {name}, {task.name!r}: {why}; the shipped score is taken")
            else:
                found[task] = task.sound_specialist if value == task.specialist else value
    return found, problems


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
