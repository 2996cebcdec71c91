"""MileBench: the groups of data sets (T-1 to I-1), Realistic, Diagnostic and the needles, by the official rules.

A part is a data set. A group with a single data set in the runs has no row besides that of the data set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lmms_eval.compare.benchmarks.contract import Benchmark, Headlines, Kept, Number, kept, scored
from lmms_eval.compare.matching import Shared
from lmms_eval.stats.interval import MeanSpread
from lmms_eval.tasks.milebench.facts import datasets
from lmms_eval.tasks.milebench.summary.dataset import Pair
from lmms_eval.tasks.milebench.summary.figures import Figure, FigureEntry, group_entries, overall_entries

_COLUMN = "predictions,none"
_PREFIX, _DEMO = "milebench_", "milebench_demo_"
_NO_SPREAD = MeanSpread(0.0, 1, 1)
"""Placeholder: differences do not need the spread of a single run's figure."""


def _headlines_of(pairs: Sequence[Shared]) -> Iterator[Headlines]:
    """Yield groups and overall figures, separately for the benchmark's data and the demonstration."""
    known = {facts.task: facts for facts in datasets().values()}
    for title, prefix in (("milebench", _PREFIX), ("milebench_demo", _DEMO)):
        chosen: dict[str, tuple[Shared, Kept]] = {}
        for pair in pairs:
            facts = known.get(pair.task.removeprefix(prefix)) if pair.task.startswith(prefix) else None
            if facts is not None and (taken := kept(pair, scored(_COLUMN))).values:
                chosen[facts.name] = (pair, taken)
        if chosen:
            yield _headlines(title, chosen)


def _headlines(title: str, chosen: Mapping[str, tuple[Shared, Kept]]) -> Headlines:
    parts = {name: taken.means(lambda _: "all")["all"] for name, (_, taken) in chosen.items()}
    shown = {entry.name for entry in _entries(dict.fromkeys(parts, 0.5)) if _members(entry) > 1}

    def numbers(means: Mapping[str, float]) -> Mapping[str, float]:
        found = _entries(means)
        return {entry.name: entry.scores.official.mean for entry in found if entry.name in shown and entry.scores}

    rows = {}
    for entry in _entries(dict.fromkeys(parts, 0.5)):
        if entry.name in shown:
            gaps = (f"partial: {len(entry.gaps)} data sets are not in both runs",) if entry.gaps else ()
            notes = (f"mean over {_members(entry)} data sets", *gaps)
            rows[entry.name] = Number(f"{title} {entry.name}", "official", notes=notes)
    return Headlines(
        rows,
        parts,
        numbers,
        {name: pair.task for name, (pair, _) in chosen.items()},
        {pair.task: taken.pairing for pair, taken in chosen.values()},
    )


def _entries(means: Mapping[str, float]) -> list[FigureEntry]:
    """Return the benchmark's groups and overall figures from the means of data sets (0 to 1)."""
    known = datasets()
    figures = {name: Figure(mean, _NO_SPREAD) for name, mean in means.items()}
    entries = {
        name: FigureEntry(known[name].name, known[name].title, Pair(figure, figure), 1, known[name].samples)
        for name, figure in figures.items()
    }
    groups = group_entries(known, entries)
    return [*groups.values(), *overall_entries(known, groups)]


def _members(entry: FigureEntry) -> int:
    """Return the number of an entry's data sets; each counts as one sample in ``_entries``."""
    return entry.samples if entry.scores is not None else 0


BENCHMARK = Benchmark(_headlines_of)
