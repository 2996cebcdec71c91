"""Compares the runs of a report: the numbers of ``lmms-eval compare``, and the documents that two runs share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from lmms_eval.compare.comparing import compare_pairs_of
from lmms_eval.compare.differences import compare_parts, dividing_columns
from lmms_eval.compare.flips import surprises_among
from lmms_eval.compare.matching import MatchedPair, PairedColumn, chosen_runs, match_pair, pairs_of, runs_of
from lmms_eval.compare.runs import RunRows
from lmms_eval.compare.verdicts import CompareOptions, Comparison, PairComparison
from lmms_eval.errors import DataError, LmmsEvalError, UsageError
from lmms_eval.results.breakdown import MOST_COLUMNS
from lmms_eval.stats.differences import right_counts
from lmms_eval.utils.records import to_dict
from lmms_eval.viewer.chunks import Chunks

MOST_PARTS = 1_000
"""Most rows over all columns and pairs. Columns that would exceed it are left to the command."""


if TYPE_CHECKING:
    from numpy import intp, str_
    from numpy.typing import NDArray

    Places = NDArray[intp]

MOST_RUNS = 5
"""Every pair is compared for up to so many runs of a task. With more, each run is compared with the first one."""
UNPAIRED, NEITHER, ONLY_FIRST, ONLY_SECOND, BOTH = "-nfsb"
"""Kinds of documents with right-or-wrong scores, by the runs that are right."""
EQUAL, FIRST_BETTER, SECOND_BETTER = "=><"
"""Kinds of documents with other scores."""

_NO_SCORES = "no document has a score in both runs"

Plain = dict[str, Any]
Shown = Sequence[Sequence[Sequence[int]]] | Mapping[int, Sequence[Sequence[int]]]
"""Rows that the pages show, in their order, by number of the run and by task of the run."""


class ComparisonWriter:
    """Writes the pieces ``compare``, ``compare-A-B`` (numbers of a pair), ``pairs-A-B-N`` (documents of a task) and
    ``parts-A-B-N`` (numbers by a metadata column). A and B are the numbers of runs, by default their places.

    The runs have unique names. ``divides`` are metadata columns that may divide the documents, by default all.
    """

    def __init__(
        self,
        runs: Sequence[RunRows],
        shown: Shown,
        chunks: Chunks,
        divides: Collection[str] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> None:
        self.runs, self.shown, self.chunks, self.divides = runs, shown, chunks, divides
        places = range(len(runs)) if numbers is None else numbers
        self._numbers = {run.name: number for number, run in zip(places, runs, strict=True)}
        counts = Counter(task for run in chosen_runs(runs, CompareOptions()) for task in run.tasks)
        is_large = max(counts.values(), default=0) > MOST_RUNS
        self._options = CompareOptions(reference=runs[0].name if is_large else "")

    def write(self) -> list[tuple[int, int]]:
        """Write all pieces, which contain the reasons why pairs cannot be compared. Returns the compared pairs.

        Raises ``LmmsEvalError`` if a file cannot be written.
        """
        pairs, entries = self._matched()
        comparison, reason = Comparison((), (), None), ""
        try:
            if pairs:
                comparison = compare_pairs_of(pairs, [run.name for run in self.runs], self._options)
        except LmmsEvalError as error:
            reason = str(error)
        for pair, found in zip_longest(pairs, comparison.pairs):
            has_rows = found is not None and len(found.rows) > 0
            if has_rows:
                self._write_pair(pair, found, runs_of(pairs))
            entries.append(self._entry(pair.first, pair.second, pair.notes, "" if has_rows else reason or _NO_SCORES))
        entries.sort(key=lambda entry: (entry["first"], entry["second"]))
        parts = self._write_parts(pairs if comparison.pairs else [])
        summary = {
            "margin": comparison.margin,
            "reference": self._numbers.get(self._options.reference),
            "alpha": comparison.alpha,
            "notes": comparison.notes,
            "rows": sum(len(pair.rows) for pair in comparison.pairs),
            "ranks": {row: [to_dict(rank) for rank in ranks] for row, ranks in comparison.ranks.items()},
        }
        self.chunks.write("compare", summary | {"pairs": entries, "by": parts})
        return [(entry["first"], entry["second"]) for entry in entries if not entry["reason"]]

    def _write_parts(self, pairs: Sequence[MatchedPair]) -> list[Plain]:
        """Write the pieces ``parts-A-B-N`` of each pair of runs and column with few values.

        Returns an entry for each column N: its name, and the number of rows over all pairs or the reason for no rows.
        """
        found: list[Plain] = []
        left = MOST_PARTS
        for column, most in dividing_columns(pairs).items():
            if len(found) == MOST_COLUMNS or (self.divides is not None and column not in self.divides):
                continue
            entry: Plain = {"column": column, "rows": 0, "reason": ""}
            try:
                rows = compare_parts(pairs, column, self._options) if most <= left else []
            except UsageError:  # no document of its tasks has both scores
                continue
            for pair, of_pair in zip(pairs, rows, strict=bool(rows)):
                name = f"parts-{self._numbers[pair.first.name]}-{self._numbers[pair.second.name]}-{len(found)}"
                self.chunks.write(name, [to_dict(row) for row in of_pair])
                entry["rows"] += len(of_pair)
            if not rows:
                entry["reason"] = f"too many parts for a report ({most:,}): lmms-eval compare --by {column} shows them"
            left -= entry["rows"]
            found.append(entry)
        return found

    def _matched(self) -> tuple[list[MatchedPair], list[Plain]]:
        matched, refused = [], []
        for first, second in pairs_of(chosen_runs(self.runs, self._options), self._options):
            if len(self.runs) > MOST_RUNS and first.tasks.keys().isdisjoint(second.tasks):
                continue  # most pairs of many runs may share no task
            try:
                matched.append(match_pair(first, second, self._options, keeps_rest=True))
            except (DataError, UsageError) as error:
                refused.append(self._entry(first, second, (), str(error)))
        return matched, refused

    def _entry(self, first: RunRows, second: RunRows, notes: Sequence[str], reason: str) -> Plain:
        numbers = self._numbers
        return {"first": numbers[first.name], "second": numbers[second.name], "notes": list(notes), "reason": reason}

    def _write_pair(self, pair: MatchedPair, found: PairComparison, among: Sequence[RunRows]) -> None:
        name = f"{self._numbers[pair.first.name]}-{self._numbers[pair.second.name]}"
        by_task: dict[str, list[PairedColumn]] = {}
        for column in pair.columns:
            by_task.setdefault(column.task, []).append(column)
        tasks = []
        for place, (task, columns) in enumerate(by_task.items()):
            piece = f"pairs-{name}-{place}"
            tasks.append({"task": task, "piece": piece, **self._write_documents(piece, pair, columns, among)})
        rows, over_prompts = [to_dict(row) for row in found.rows], [to_dict(row) for row in found.prompts]
        self.chunks.write(f"compare-{name}", {"rows": rows, "prompts": over_prompts, "tasks": tasks})

    def _write_documents(
        self, piece: str, pair: MatchedPair, columns: Sequence[PairedColumn], among: Sequence[RunRows]
    ) -> Plain:
        """Write the documents of a task that both runs have and the report shows. Returns their number and kinds."""
        import numpy as np

        shared = columns[0].shared
        keys, places = [], []
        for run, rows in ((pair.first, shared.first_rows), (pair.second, shared.second_rows)):
            number, task = self._numbers[run.name], list(run.tasks).index(columns[0].task)
            keys.append(f"{number}-{task}")
            places.append(_places(self.shown[number][task], rows))
        is_shown = (places[0] >= 0) & (places[1] >= 0)
        count = int(is_shown.sum())
        described, written = {}, {}
        for column in columns:
            kinds = kinds_of(column)
            described[str(column)] = {
                "first": str(column),
                "second": f"{column.metric},{column.second_filter or column.filter}",
                "higher": column.higher_is_better,
                "kinds": Counter(kinds.tolist()),
            }
            surprise = surprises_among(pair, column, among)[is_shown]
            written[str(column)] = {
                "kinds": "".join(kinds[is_shown].tolist()),
                # only those of documents that changed, in their order
                "surprise": [round(one, 3) for one in surprise[np.isfinite(surprise)].tolist()],
            }
        first, second = (_counted(side[is_shown].tolist()) for side in places)
        self.chunks.write(piece, {"count": count, "first": first, "second": second, "columns": written})
        return {"first": keys[0], "second": keys[1], "documents": len(is_shown), "shown": count, "columns": described}


def kinds_of(column: PairedColumn) -> NDArray[str_]:
    """Return a letter for each shared document: the side that is right, or better."""
    import numpy as np

    has, better = column.has_both, column.better()
    first, second = column.first, column.second
    kinds = np.full(len(has), UNPAIRED)
    if column.higher_is_better and has.any() and right_counts(first[has], second[has], column.within):
        # the lower of two values is wrong, also if all documents have the same value
        wrong = column.within.low if np.isfinite(column.within.low) else 0.0
        kinds[has & (first == wrong) & (second == wrong)] = NEITHER
        kinds[has & (first != wrong) & (second != wrong)] = BOTH
        kinds[has & (better > 0)] = ONLY_FIRST
        kinds[has & (better < 0)] = ONLY_SECOND
        return kinds
    for kind, where in ((EQUAL, better == 0), (FIRST_BETTER, better > 0), (SECOND_BETTER, better < 0)):
        kinds[has & where] = kind
    return kinds


def _places(shown: Sequence[int], rows: Places) -> Places:
    """Return the places of a task's rows in the report, -1 for rows that are not shown."""
    import numpy as np

    if not len(shown):
        return np.full(len(rows), -1, np.intp)
    known = np.asarray(shown, np.intp)  # ascending
    at = np.minimum(np.searchsorted(known, rows), len(known) - 1)
    return np.where(known[at] == rows, at, -1)


def _counted(places: list[int]) -> list[int] | None:
    """Return places, or ``None`` if they are 0, 1, 2, ..., as in most runs."""
    return None if places == list(range(len(places))) else places
