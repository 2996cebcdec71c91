"""Sensitivity of the levels to the choice of tasks and to missing scores."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from lmms_eval.errors import UsageError
from lmms_eval.stats.interval import Interval, NoInterval
from lmms_eval.tasks.general_bench.facts import LANGUAGE
from lmms_eval.tasks.general_bench.levels.formulas import AllLevels, GroupMeans, combine
from lmms_eval.tasks.general_bench.levels.report import Entry, Ranked

DRAWS = 300
SEED = 29


class LevelSensitivity(Struct, frozen=True):
    """Sensitivity of one level."""

    interval: Interval | NoInterval
    """Interval of the level over resampled tasks."""
    missing_rows: int
    """Number of tasks of the level without a score."""
    if_at_specialist: float
    """The level if those tasks had the specialists' scores, which bounds the loss from missing rows."""
    wins_needed: int | None
    """Least number of missing tasks to win for a positive level: 0 if it is positive, ``None`` if all are too few."""
    modalities: Mapping[str, Interval | NoInterval] = field(default_factory=dict)
    """Intervals of this level for each modality. Level 5 exists only for the whole."""


def sensitivity(
    ranked: Ranked, draws: int = DRAWS, seed: int = SEED, level: float = 0.95
) -> dict[int, LevelSensitivity]:
    """Return the interval of every level under resampling of tasks, and its dependence on missing rows.

    Tasks are drawn with replacement within each sheet (so that M, N and T do not change), ``draws`` times by one
    generator seeded with ``seed``. The interval holds the middle ``level`` of the draws. There is no interval without
    draws, or if all draws give one number. Raises ``UsageError`` for one draw, a negative number, or a level that is no
    share.
    """
    if draws < 0 or draws == 1 or not 0 < level < 1:
        raise UsageError(
            f"sensitivity: {draws} draws at level {level}; give 0, or at least 2, and a share such as 0.95"
        )
    sampled = _drawn_levels(ranked, draws, seed)
    filled = combine({name: _filled(rows) for name, rows in ranked.entries.items()}, ranked.epsilon).final
    return {
        number: LevelSensitivity(
            interval=_interval(sorted(one.final[number] for one in sampled), level),
            missing_rows=sum(
                entry.raw is None
                for name, rows in ranked.entries.items()
                if number == 5 or name != LANGUAGE
                for entry in rows
            ),
            if_at_specialist=filled[number],
            wins_needed=_wins_needed(ranked, number),
            modalities={
                name: _interval(sorted(one.modalities[name][number] for one in sampled), level)
                for name in (ranked.modalities if number < 5 else ())
            },
        )
        for number in ranked.levels
    }


def _drawn_levels(ranked: Ranked, draws: int, seed: int) -> list[AllLevels]:
    # a complex number carries a row's score and its winning part, so that one sum adds both
    rows = {name: [complex(e.counted, e.winning) for e in entries] for name, entries in ranked.entries.items()}
    source = random.Random(seed)
    found = []
    for _ in range(draws):
        groups = {}
        for name, values in rows.items():
            total = sum(source.choices(values, k=len(values))) / len(values)
            groups[name] = GroupMeans(total.real, total.imag)
        found.append(combine(groups, ranked.epsilon))
    return found


def _interval(values: Sequence[float], level: float) -> Interval | NoInterval:
    """Return the interval of the middle draws. Draws are within the scale, as every level is."""
    if not values:
        return NoInterval("no draws")
    if math.isclose(values[0], values[-1], rel_tol=1e-9):
        return NoInterval(f"{values[0]:.3g} in every draw")

    def quantile(q: float) -> float:
        place = q * (len(values) - 1)
        below = math.floor(place)
        above = min(below + 1, len(values) - 1)
        return values[below] + (place - below) * (values[above] - values[below])

    return Interval(quantile(0.5 - level / 2), quantile(0.5 + level / 2), "bootstrap percentile")


def _filled(entries: Sequence[Entry]) -> GroupMeans:
    """Return a sheet's means with the specialists' scores in place of missing ones."""
    counted = [entry.specialist if _is_open(entry) else entry.counted for entry in entries]
    winning = [entry.specialist if _is_open(entry) else entry.winning for entry in entries]
    return GroupMeans(math.fsum(counted) / len(entries), math.fsum(winning) / len(entries))


def _is_open(entry: Entry) -> bool:
    """Return whether the model has no score and the specialist has one."""
    return entry.raw is None and math.isfinite(entry.specialist)


def _wins_needed(ranked: Ranked, number: int) -> int | None:
    if ranked.levels[number] > 0:
        return 0
    needs = {name: _group_need(rows) for name, rows in ranked.entries.items()}
    sheets = [name for name in needs if name != LANGUAGE]
    if number in (2, 3):
        return 1 if any(needs[name] is not None for name in sheets) else None
    options = []  # a modality needs wins in both of its sheets
    for modality in ranked.modalities:
        own = [needs[name] for name in sheets if name.split("-")[0] == modality]
        if len(own) > 1 and None not in own:
            options.append(sum(need or 0 for need in own))
    fourth = min(options, default=None)
    if number == 4 or fourth is None:
        return fourth
    language = needs.get(LANGUAGE)
    return None if language is None else fourth + language


def _group_need(entries: Sequence[Entry]) -> int | None:
    """Return the number of wins that a sheet lacks (0 or 1), or ``None`` if no missing task can win."""
    if any(entry.winning > 0 for entry in entries):
        return 0
    return 1 if any(_is_open(entry) and entry.specialist > 0 for entry in entries) else None
