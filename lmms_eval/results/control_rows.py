"""Rows and sentences of controls in the results table: gaps, rotations taken together, the chance level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from lmms_eval import stats
from lmms_eval.api.task import Task
from lmms_eval.config.controls import control_name
from lmms_eval.results.controls import Controls, Gap, Rotated
from lmms_eval.results.table import GapCells, TableRow, interval_text

WITHOUT = {
    "no-media": "without its pictures, videos and sounds",
    "blank-media": "with grey pictures and silence",
    "shuffled-media": "with the media of another document",
    "choices-only": "with its choices alone",
}
MOST_SENTENCES = 6


def with_gaps(rows: Iterable[TableRow], task: Task, controls: Controls) -> list[TableRow]:
    """Put the chance level into the rows of a task, and the gaps into those of a control."""
    found = controls.tasks.get(task.control_of or task.name)
    if found is None:
        return list(rows)
    if not task.control_of:
        uniform, majority = found.chance.uniform, found.chance.majority
        told = majority if uniform is None else uniform
        right = {} if told is None else {row: f"{told * scale:.4f}" for row, scale in found.scales.items()}
        return [replace(row, chance=right.get(f"{row.metric},{row.filter}", "")) for row in rows]
    gaps = found.gaps.get(task.name.removeprefix(control_name(task.control_of, "")), {})
    return [_with_gap(row, gaps) for row in rows]


def _with_gap(row: TableRow, gaps: Mapping[str, Gap]) -> TableRow:
    gap = gaps.get(f"{row.metric},{row.filter}")
    if gap is None:
        return row
    return replace(row, gap=GapCells(f"{gap.gap:+.4g}", _ends(gap.interval), gap.p))


def rotation_rows(rows: Sequence[TableRow], controls: Controls) -> list[TableRow]:
    """Put the mean over rotations, and the share right in all of them, behind the rows of each task."""
    made: list[TableRow] = []
    for row in rows:
        made.append(row)
        found = controls.tasks.get(row.name)
        rotated = None if found is None else found.rotations.get(f"{row.metric},{row.filter}")
        if rotated is not None:
            made += _rotation_rows(row, rotated)
    return made


def _rotation_rows(row: TableRow, found: Rotated) -> list[TableRow]:
    depth = len(row.alias) - len(row.alias.lstrip(" -"))
    plain = TableRow(
        row.name, "", row.metric, row.filter, row.shots, row.higher_is_better, stderr="N/A", scored=found.n
    )
    shown = (
        (f"mean of {found.orders} rotations", found.mean, found.mean_interval),
        (f"right in all {found.orders}", found.all_right, found.all_right_interval),
    )
    return [
        replace(plain, alias=f"{' ' * depth} - {text}", value=f"{value:.4f}", interval=_ends(interval))
        for text, value, interval in shown
    ]


def _ends(found: stats.Interval | stats.NoInterval) -> str:
    if isinstance(found, stats.Interval):
        return interval_text(found.low, found.high)
    return interval_text(None, None, found.reason)


def control_lines(controls: Controls) -> list[str]:
    """Say in words which scores cannot be told from those of their controls, by the first metric of each task, and what
    is left of each group's."""
    unclear = [
        _sentence(name, control, next(iter(gaps.values())))
        for name, task in controls.tasks.items()
        for control, gaps in task.gaps.items()
        if gaps and not next(iter(gaps.values())).is_clear
    ]
    if len(unclear) > MOST_SENTENCES:
        more = len(unclear) - MOST_SENTENCES
        unclear = [
            *unclear[:MOST_SENTENCES],
            f"... and {more} more that cannot be told apart (controls in the results)",
        ]
    groups = [
        _sentence(f"{name} (mean over its tasks)", control, gap)
        for name, found in controls.groups.items()
        for control, gap in found.items()
    ]
    return [*unclear, *groups]


def _sentence(name: str, control: str, gap: Gap) -> str:
    left = (
        f"{gap.score:.4g} of {gap.plain:.4g} remain" if gap.gap >= 0 else f"{gap.score:.4g} instead of {gap.plain:.4g}"
    )
    shown = _ends(gap.interval)
    told = f"{name}: {WITHOUT.get(control, control)} {left} (gap {gap.gap:+.4g} {shown}, {gap.n} documents)"
    if not isinstance(gap.interval, stats.Interval):
        return f"{told}: too few documents to tell the two apart"
    if gap.is_clear:
        return f"{told}: the score {'falls' if gap.gap > 0 else 'rises'}"
    return f"{told}: the two cannot be told apart, so the score does not show that the model uses what was left out"
