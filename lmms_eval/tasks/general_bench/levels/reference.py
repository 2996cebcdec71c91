"""Profile ``reference``: the reference's ranker as computed, defects included (General-Bench specification §8, §9).

Rows are paired by position, metric names are compared exactly, negative values of mapped metrics are errors, missing
mapped values become 0 (and beat a negative specialist), NLP scores are not mapped, and level 4 has an epsilon. If the
reference program stops with an error, there is an error or a warning here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.facts import LANGUAGE, MODALITIES, TaskFacts, sheets
from lmms_eval.tasks.general_bench.levels import formulas
from lmms_eval.tasks.general_bench.levels.report import Entry, LanguageReport, Ranked, Support, modality_reports
from lmms_eval.tasks.general_bench.levels.tables import SPECIALIST_COLUMN, LevelRow, Table, column, reference_number

_MAPPED_NAME = {"rte": "RTE", "chamfer_distance": "CD"}
"""Spellings that the ranker maps, for metrics that the workbook spells differently."""
_STOPS = "the authors' program stops there"


class Pairs(Struct, frozen=True):
    """A sheet's specialists and scores, row by row."""

    sheet: str
    names: tuple[str, ...]
    metrics: tuple[str, ...]
    raw_specialists: tuple[float, ...]
    raw_scores: tuple[float, ...]
    specialists: tuple[float, ...]
    scores: tuple[float, ...]
    """Scores. There are fewer than specialists if the model's sheet is shorter."""

    @property
    def support(self) -> Support:
        both = [
            (theirs, ours)
            for theirs, ours in zip(self.specialists, self.scores, strict=False)
            if math.isfinite(theirs) and math.isfinite(ours)
        ]
        supported = sum(theirs != 0 and ours != 0 for theirs, ours in both)
        return Support(supported, len(self.specialists), sum(formulas.is_win(*pair) for pair in both))


def specialists(corrected: bool = False) -> Mapping[str, tuple[LevelRow, ...]]:
    """Return the shipped table of specialists. ``corrected`` removes its faults."""
    return {name: tuple(_specialist(task, corrected) for task in rows) for name, rows in sheets().items()}


def _specialist(task: TaskFacts, corrected: bool) -> LevelRow:
    if not corrected or not task.correction:
        return LevelRow(task.name, task.spelling, task.specialist)
    if task.correction == "mapped":
        return LevelRow(task.name, task.spelling, formulas.map_score(task.spelling, task.specialist))
    return LevelRow(task.name, _MAPPED_NAME.get(task.metric, task.spelling), task.sound_specialist)


def rank_reference(model: str, table: Table, other: Mapping[str, Sequence[LevelRow]] | Table | None = None) -> Ranked:
    """Rank a column of a result table as the reference does.

    Args:
        other: the specialists' table; the published one if not given.

    Raises:
        DataError: sheets differ, the model's column is missing, a mapped value is negative, or an NLP RMSE is 0.
    """
    theirs = other if other is not None else specialists()
    if isinstance(theirs, Table):
        theirs = {name: column(sheet, name, SPECIALIST_COLUMN) for name, sheet in theirs.task_sheets.items()}
    if set(table.task_sheets) != set(theirs):
        absent, unknown = (
            sorted(theirs.keys() - table.task_sheets.keys()),
            sorted(table.task_sheets.keys() - theirs.keys()),
        )
        parts = [f"missing: {', '.join(absent)}"] * bool(absent) + [f"unknown: {', '.join(unknown)}"] * bool(unknown)
        raise DataError(
            f"{table.source}: the sheets are not those of the specialists' table ({'; '.join(parts)}); {_STOPS}"
        )
    pairs: dict[str, Pairs] = {}
    warnings: list[str] = []
    for name, sheet in table.task_sheets.items():
        rows = column(sheet, f"{table.source}, sheet {name}", model)
        pairs[name] = pair(name, theirs[name], rows)
        warnings += [*_order_warnings(name, theirs[name], rows), *_stops(name, theirs[name], rows)]
    return _ranked(model, pairs, warnings)


def pair(sheet: str, theirs: Sequence[LevelRow], rows: Sequence[LevelRow]) -> Pairs:
    """Pair a sheet's rows by position and map them. The language sheet is not mapped.

    Raises ``DataError`` for a negative value of a mapped metric.
    """
    ours = rows[: len(theirs)]
    metrics = tuple(row.metric for row in theirs)
    raw_theirs = tuple(reference_number(row.cell) for row in theirs)
    raw_ours = tuple(reference_number(row.cell) for row in ours)
    is_raw = sheet == LANGUAGE
    return Pairs(
        sheet=sheet,
        names=tuple(row.name for row in theirs),
        metrics=metrics,
        raw_specialists=raw_theirs,
        raw_scores=raw_ours,
        specialists=raw_theirs if is_raw else _mapped(sheet, theirs, metrics, raw_theirs),
        scores=raw_ours if is_raw else _mapped(sheet, ours, metrics, raw_ours),
    )


def _mapped(sheet: str, rows: Sequence[LevelRow], metrics: Sequence[str], values: Sequence[float]) -> tuple[float, ...]:
    found = []
    for row, metric, value in zip(rows, metrics, values, strict=False):
        try:
            found.append(formulas.ranker_score(metric, value))
        except DataError as error:
            raise DataError(f"sheet {sheet}, {row.name!r}: {error}; {_STOPS}") from error
    return tuple(found)


def reference_levels(pairs: Mapping[str, Pairs]) -> formulas.AllLevels:
    """Compute all levels from the paired sheets. Sheets of other modalities are skipped.

    Raises ``DataError`` if the RMSE of the language sheet is 0.
    """
    groups = {
        name: formulas.GroupMeans(formulas.mean_of_rows(one.scores), formulas.winning_mean(one.specialists, one.scores))
        for name, one in sorted(pairs.items())
        if name != LANGUAGE and name.split("-")[0] in MODALITIES
    }
    if LANGUAGE in pairs:
        one = pairs[LANGUAGE]
        try:
            winning = formulas.reference_language(one.metrics, one.specialists, one.scores)
        except DataError as error:
            raise DataError(f"sheet {LANGUAGE}: {error}; {_STOPS}") from error
        groups[LANGUAGE] = formulas.GroupMeans(0.0, winning)
    return formulas.combine(groups, formulas.REFERENCE_EPSILON)


def _ranked(model: str, pairs: Mapping[str, Pairs], warnings: Sequence[str]) -> Ranked:
    levels = reference_levels(pairs)
    entries = {name: _entries(one) for name, one in pairs.items()}
    supports = {name: one.support for name, one in pairs.items()}
    return Ranked(
        model=model,
        profile="reference",
        scope="A",
        modalities=modality_reports(levels, entries, supports),
        language=LanguageReport(supports[LANGUAGE], levels.language) if LANGUAGE in pairs else None,
        levels=levels.final,
        epsilon=formulas.REFERENCE_EPSILON,
        entries=entries,
        warnings=tuple(warnings),
    )


def _entries(pairs: Pairs) -> tuple[Entry, ...]:
    found, rmse_is_due = [], pairs.sheet == LANGUAGE
    for row, name in enumerate(pairs.names):
        raw, score = (pairs.raw_scores[row], pairs.scores[row]) if row < len(pairs.scores) else (math.inf, math.inf)
        if rmse_is_due and pairs.metrics[row].upper() == "RMSE":
            score = 100.0 * formulas.adjusted_rmse(raw) if math.isfinite(raw) else 0.0
            rmse_is_due = False
        found.append(
            Entry(
                sheet=pairs.sheet,
                task=name,
                metric=pairs.metrics[row],
                raw=raw if math.isfinite(raw) else None,
                score=score if math.isfinite(score) else None,
                raw_specialist=pairs.raw_specialists[row],
                specialist=pairs.specialists[row],
                won=formulas.is_win(pairs.specialists[row], score),
            )
        )
    return tuple(found)


def _order_warnings(sheet: str, theirs: Sequence[LevelRow], ours: Sequence[LevelRow]) -> list[str]:
    if [row.name for row in ours] == [row.name for row in theirs]:
        return []
    if len(ours) != len(theirs):
        return [f"sheet {sheet}: {len(ours)} rows and {len(theirs)} of the specialists; paired by position"]
    return [f"sheet {sheet}: rows are named otherwise than the specialists'; paired by position all the same"]


def _stops(sheet: str, theirs: Sequence[LevelRow], ours: Sequence[LevelRow]) -> list[str]:
    """Warn about contents that stop the reference and that are read here by the specification.

    The reference compares the language sheet's cells unchanged, so that any text in them ends it, and it takes only
    names of sheets with two parts.
    """
    if sheet != LANGUAGE:
        return [] if sheet.count("-") == 1 else [f"sheet {sheet}: neither {LANGUAGE} nor two parts; {_STOPS}"]
    found = []
    for whose, rows in (("the model's", ours), ("the specialists'", theirs)):
        others = [place for place, row in enumerate(rows) if not isinstance(row.cell, int | float | None)]
        if others:
            more = f" (and in {len(others) - 1} further rows)" if others[1:] else ""
            found.append(
                f"sheet {sheet}, row {others[0] + 2}: {rows[others[0]].cell!r:.80} in {whose} column is no cell of a"
                f" number{more}; {_STOPS}"
            )
    return found
