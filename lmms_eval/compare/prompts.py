"""Differences of two runs that were asked with the same variants of their prompts: per prompt, and over prompts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from lmms_eval.compare.matching import MatchedPair, PairedColumn
from lmms_eval.compare.runs import RunRows
from lmms_eval.compare.verdicts import CompareOptions, PromptDifference
from lmms_eval.config.rules import control_name
from lmms_eval.results.facts import part_of
from lmms_eval.stats.interval import Interval, NoInterval
from lmms_eval.utils.names import some_of
from lmms_eval.utils.numbers import ScoreRange
from lmms_eval.utils.prompt_variants import OWN

_MOST_NAMED = 5


class PromptFindings(Struct, frozen=True):
    """The differences of a pair over prompts, and notes about prompts that are left out."""

    rows: tuple[PromptDifference, ...] = ()
    notes: tuple[str, ...] = ()


def compare_prompts(pair: MatchedPair, options: CompareOptions) -> PromptFindings:
    """Compare two runs over the prompts that both were asked with.

    A prompt counts if both runs have a variant of its name with the same changes (``digest``).
    """
    rows: list[PromptDifference] = []
    notes: list[str] = []
    columns = {(column.task, str(column)): column for column in pair.columns}
    for task in dict.fromkeys(column.task for column in pair.columns):
        sides = [_digests(run, task) for run in (pair.first, pair.second)]
        if not any(sides):
            continue
        names = [name for name, digest in sides[0].items() if sides[1].get(name) == digest]
        left = [name for name in dict.fromkeys((*sides[0], *sides[1])) if name not in names]
        if left:
            notes.append(f"{task}: prompts that only one run has, or that differ: {some_of(left, _MOST_NAMED)}")
        for key in [key for of, key in columns if of == task] if len(names) > 1 else ():
            asked = {name: columns.get((task if name == OWN else control_name(task, name), key)) for name in names}
            found = {name: column for name, column in asked.items() if column is not None}
            if len(found) == len(names) and not any(one.shared.stopped_early for one in found.values()):
                rows += [row for row in [_difference(task, found, options)] if row is not None]
    return PromptFindings(tuple(rows), tuple(notes))


def _digests(run: RunRows, task: str) -> dict[str, str]:
    """Return the digests of a task's variants by name; empty without variants."""
    variants = part_of(part_of(part_of(run.results or {}, "prompt_variants"), task), "variants")
    return {str(name): str(part_of(variants, name).get("digest")) for name in variants}


def _difference(task: str, columns: Mapping[str, PairedColumn], options: CompareOptions) -> PromptDifference | None:
    """Return the difference over prompts; ``None`` for fewer than two documents with all scores."""
    import numpy as np

    from lmms_eval.stats.differences import PairOptions, compare_pairs
    from lmms_eval.stats.prompts import prompt_mean, spread_over

    scores = [dict(_scores(column)) for column in columns.values()]
    shared = [one for one in scores[0] if all(one in of_prompt for of_prompt in scores)]
    first_column = next(iter(columns.values()))
    if len(shared) < 2:
        return None
    first, second = (np.array([[of[one][side] for of in scores] for one in shared]) for side in (0, 1))
    clusters = _clusters(first_column, shared)
    within = first_column.within
    pair_options = PairOptions(level=1 - options.alpha, draws=options.draws, seed=options.seed, within=within)
    these = compare_pairs(first.mean(axis=1), second.mean(axis=1), clusters, pair_options)
    over = prompt_mean(first - second, spread_over(clusters))
    width = within.high - within.low
    like_these = over.like_these(these.interval, ScoreRange(-width, width), 1 - options.alpha)
    sign = 1.0 if first_column.higher_is_better else -1.0
    asked = set().union(*(column.shared.first.ids for column in columns.values()))
    return PromptDifference(
        name=task,
        metric=first_column.metric,
        filter=first_column.filter,
        first=float(first.mean()),
        second=float(second.mean()),
        value=over.value,
        prompts=dict(zip(columns, over.means, strict=True)),
        these=_interval(these.interval),
        no_these=_reason(these.interval),
        p_these=these.p,
        like_these=_interval(like_these),
        no_like_these=_reason(like_these),
        p_like_these=over.p(these.p),
        spread=None if math.isnan(over.spread) else over.spread,
        ahead=tuple(name for name, mean in zip(columns, over.means, strict=True) if sign * mean > 0),
        behind=tuple(name for name, mean in zip(columns, over.means, strict=True) if sign * mean < 0),
        n=len(shared),
        missing=len(asked) - len(shared),
        unit="percent" if first_column.is_share else "",
        higher_is_better=first_column.higher_is_better,
        is_mean=first_column.is_mean,
    )


def _scores(column: PairedColumn) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield the two scores of each document that has both."""
    ids = column.shared.first.ids
    for row, left, right in zip(column.shared.first_rows, column.first, column.second, strict=True):
        if math.isfinite(left) and math.isfinite(right):
            yield ids[row].strip(), (float(left), float(right))


def _clusters(column: PairedColumn, shared: Sequence[str]) -> list[str | None] | None:
    names = column.shared.clusters
    if names is None:
        return None
    ids = [column.shared.first.ids[row].strip() for row in column.shared.first_rows]
    by_id = dict(zip(ids, names, strict=True))
    return [by_id[one] for one in shared]


def _interval(found: Interval | NoInterval) -> Interval | None:
    return found if isinstance(found, Interval) else None


def _reason(found: Interval | NoInterval) -> str:
    return found.reason if isinstance(found, NoInterval) else ""
