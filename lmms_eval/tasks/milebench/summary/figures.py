"""The numbers of MileBench over its data sets: groups, Realistic and Diagnostic.

Intervals (95 %) treat data sets as fixed and their samples as random. They follow ``stats.score_interval``: the
interval of a mean of data sets comes from the spread of its strata.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.stats.interval import Interval, MeanSpread, NoInterval, score_interval
from lmms_eval.tasks._task_utils.missing import NumberBounds, filled_mean
from lmms_eval.tasks.milebench.facts import Dataset
from lmms_eval.tasks.milebench.summary.dataset import DatasetSummary, Moments, Pair
from lmms_eval.utils.numbers import SHARES

PERCENT = 100.0
REALISTIC, DIAGNOSTIC, NEEDLES = "Realistic", "Diagnostic", "Needles only"
NEEDLE_LABELS = ("N-1", "N-2")


class Figure(Struct, frozen=True):
    """A score from 0 to 1 with its error; shown in percent."""

    mean: float
    spread: MeanSpread

    @property
    def value(self) -> float:
        """In percent."""
        return PERCENT * self.mean

    @property
    def interval(self) -> Interval | NoInterval:
        """The 95 % interval, in percent."""
        found = score_interval(self.mean, self.spread, SHARES)
        if isinstance(found, NoInterval):
            return found
        return Interval(PERCENT * found.low, PERCENT * found.high, found.method)

    @property
    def ends(self) -> tuple[float, float] | tuple[None, None]:
        """The ends of the interval; ``None`` without one."""
        found = self.interval
        return (None, None) if isinstance(found, NoInterval) else (found.low, found.high)

    def as_dict(self) -> dict[str, float | None]:
        low, high = self.ends
        return {"score": self.value, "low": low, "high": high}


class FigureEntry(Struct, frozen=True):
    """A data set, a group or an overall figure."""

    name: str
    title: str
    scores: Pair[Figure] | None
    """Scores of the scored parts; ``None`` without any."""
    samples: int
    """Scored samples."""
    published: int
    """Samples of the benchmark."""
    gaps: tuple[str, ...] = ()
    """Reasons why this is not the benchmark's number; empty if it is."""


class ScoredDataset(Struct, frozen=True):
    """A data set of the run."""

    facts: Dataset
    summary: DatasetSummary | None
    """The summary; ``None`` if nothing was scored."""
    withheld: str = ""
    missing: int = 0
    """Documents without a score."""


def figure(moments: Moments) -> Figure | None:
    """``None`` over no scores."""
    return Figure(moments.mean, moments.spread) if moments.count else None


def combined(figures: Sequence[Figure], weights: Sequence[float] | None = None) -> Figure:
    """The mean of at least one figure, weighted by ``weights`` (default: all alike)."""
    given = [1.0] * len(figures) if weights is None else list(weights)
    mean = math.fsum(weight * part.mean for weight, part in zip(given, figures, strict=True)) / math.fsum(given)
    return Figure(mean, MeanSpread.stratified([part.spread for part in figures], given))


def combined_pair(pairs: Sequence[Pair[Figure]], weights: Sequence[float] | None = None) -> Pair[Figure] | None:
    """Combine pairs; ``None`` without any."""
    if not pairs:
        return None
    return Pair(combined([pair.official for pair in pairs], weights), combined([pair.fixed for pair in pairs], weights))


def dataset_entry(scored: ScoredDataset) -> FigureEntry:
    """A data set of the run."""
    facts, summary = scored.facts, scored.summary
    count = summary.count if summary is not None else 0
    gaps = [f"{facts.name}: withheld, {scored.withheld}"] if scored.withheld else []
    if summary is None and not scored.withheld:
        gaps.append(f"{facts.name}: nothing was scored")
    is_demo = summary is not None and summary.variant.startswith("demo")
    if summary is not None and not scored.withheld and not is_demo and count != facts.samples:
        gaps.append(f"{facts.name}: {count} of {facts.samples} samples")
    pair = None if summary is None else pair_of(summary.within())
    return FigureEntry(facts.name, facts.title, pair, count, facts.samples, tuple(gaps))


def pair_of(both: Pair[Moments]) -> Pair[Figure] | None:
    """Return both figures; ``None`` without scores."""
    official, fixed = figure(both.official), figure(both.fixed)
    return None if official is None or fixed is None else Pair(official, fixed)


def missing_bounds(
    known: Mapping[str, Dataset], entries: Mapping[str, FigureEntry], missing: Mapping[str, int]
) -> dict[str, NumberBounds]:
    """Return the bounds of the official scores of groups and overall figures, in percent.

    Args:
        known: the benchmark's data sets by name.
        entries: those of the run.
        missing: for data sets of the run, documents without a score.
    """

    def figures(end: float | None) -> dict[str, FigureEntry]:
        filled = {name: entry if end is None else _filled(entry, missing.get(name, 0), end)
            for name, entry in entries.items()}  # fmt: skip
        groups = group_entries(known, filled)
        return {**{entry.name: entry for entry in overall_entries(known, groups)}, **groups}

    plain, low, high = figures(None), figures(SHARES.low), figures(SHARES.high)
    sets = {facts.label: facts.set for facts in known.values()}
    labels_of = {
        REALISTIC: [label for label in sets if sets[label] == "realistic"],
        DIAGNOSTIC: [label for label in sets if sets[label] == "diagnostic"],
        NEEDLES: NEEDLE_LABELS,
    }
    found = {}
    for name, entry in plain.items():
        labels = labels_of.get(name, (name,))
        members = {one: count for one, count in missing.items() if count and known[one].label in labels}
        least, greatest = low[name].scores, high[name].scores
        if not members or entry.scores is None or least is None or greatest is None:
            continue
        silent = [one for one in members if entries[one].scores is None]
        total = sum(members.values())
        if silent:
            found[name] = NumberBounds(total, reason=f"no document of {silent[0]} has a score")
        else:
            found[name] = NumberBounds(total, least.official.value, greatest.official.value)
    return found


def _filled(entry: FigureEntry, missing: int, end: float) -> FigureEntry:
    """Return the entry if ``missing`` further documents had the score ``end``, without their error."""
    if entry.scores is None or not missing:
        return entry
    official, fixed = (
        Figure(filled_mean(one.mean, entry.samples, missing, end), one.spread)
        for one in (entry.scores.official, entry.scores.fixed)
    )
    return replace(entry, scores=Pair(official, fixed))


def mean_entry(name: str, title: str, members: Sequence[FigureEntry]) -> FigureEntry:
    """Return the unweighted mean of the members with a score, with the gaps of all members."""
    pairs = [member.scores for member in members if member.scores is not None]
    return FigureEntry(
        name,
        title,
        combined_pair(pairs),
        sum(member.samples for member in members),
        sum(member.published for member in members),
        tuple(dict.fromkeys(gap for member in members for gap in member.gaps)),
    )


def group_entries(known: Mapping[str, Dataset], entries: Mapping[str, FigureEntry]) -> dict[str, FigureEntry]:
    """Return all groups by label, in the order of the facts. A data set that the run lacks is a gap.

    Args:
        known: the benchmark's data sets by name. entries: those of the run.
    """
    members: dict[str, list[FigureEntry]] = {}
    titles: dict[str, str] = {}
    for facts in known.values():
        titles[facts.label] = facts.title
        absent = FigureEntry(facts.name, facts.title, None, 0, facts.samples, (f"{facts.name}: not in the run",))
        members.setdefault(facts.label, []).append(entries.get(facts.name, absent))
    return {label: mean_entry(label, titles[label], found) for label, found in members.items()}


def overall_entries(known: Mapping[str, Dataset], groups: Mapping[str, FigureEntry]) -> list[FigureEntry]:
    """Realistic (mean of T-1 to S-5), Diagnostic (mean of N-1, N-2, I-1), and the mean of N-1 and N-2 alone."""
    sets = {facts.label: facts.set for facts in known.values()}
    realistic = [groups[label] for label in groups if sets[label] == "realistic"]
    diagnostic = [groups[label] for label in groups if sets[label] == "diagnostic"]
    needles = [groups[label] for label in NEEDLE_LABELS]
    return [
        mean_entry(REALISTIC, f"mean of {len(realistic)} groups", realistic),
        mean_entry(DIAGNOSTIC, "mean of N-1, N-2, I-1", diagnostic),
        mean_entry(NEEDLES, "mean of N-1, N-2", needles),
    ]
