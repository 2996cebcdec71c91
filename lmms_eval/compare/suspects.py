"""Documents that better runs miss and weaker ones hit, whose reference answer may be wrong (``docs/compare.md``)."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from lmms_eval.compare.matching import MatchedPair, common_rows, runs_of
from lmms_eval.compare.runs import DocumentTexts, RunRows, TaskRows
from lmms_eval.compare.verdicts import metric_text
from lmms_eval.errors import UsageError
from lmms_eval.stats.suspects import LEAST_RUNS, Suspicion, suspicion, vote_against, vote_weights
from lmms_eval.utils.terminal import no_formula

if TYPE_CHECKING:
    from numpy import float64, intp
    from numpy.typing import NDArray

_LONGEST_ID = 40


class Suspect(Struct, frozen=True):
    """A document whose scores or answers speak against its reference answer."""

    id: str
    hash: str | None
    target: str | None
    share: float
    """Mean score over the runs."""
    correlation: float | None
    """Correlation of its scores with the runs' means over the other documents; ``None`` if all scores are equal."""
    p: float | None
    q: float | None
    other_answer: str
    """The answer of most weight that counts as wrong; empty if the task's answers are not of a few kinds."""
    lead: float | None
    """Lead of ``other_answer`` over the answers that count as right, in log odds."""
    scores: Sequence[float]
    answers: Sequence[str | None]


class Suspects(Struct, frozen=True):
    """The suspects of one task and metric, the most suspicious first."""

    task: str
    metric: str
    runs: Sequence[str]
    documents: int
    """Documents that all runs have scored."""
    found: Sequence[Suspect]
    has_votes: bool
    """Whether the answers are of few kinds, so that the runs vote by them."""

    def line(self, alpha: float, most: int = 3) -> str:
        """Return a line that names the first suspects and counts those below a bound."""
        certain = sum(one.q is not None and one.q <= alpha for one in self.found)
        first = ", ".join(one.id[:_LONGEST_ID] for one in self.found[:most])
        order = "votes of answers" if self.has_votes else "correlation with ability"
        return (
            f"{self.task} {self.metric}: {len(self.found):,} of {self.documents:,} documents are suspect over "
            f"{len(self.runs)} runs, by {order}{f': {first}' if first else ''}"
            f"{', ...' if len(self.found) > most else ''}; {certain:,} with q ≤ {alpha:g}"
        )


def find_suspects(pairs: Sequence[MatchedPair]) -> list[Suspects]:
    """Find the suspect documents of every compared task and metric that at least four runs have.

    A document is suspect if better runs miss it and weaker ones hit it (its correlation is negative), or if the runs
    that agree on another answer outweigh those that are right. Votes need answers of few kinds, such as letters: those
    of each run must be shared by two documents on average.

    Raises:
        UsageError: fewer than four runs, or no task with different scores of four runs over the same documents.
    """
    runs = runs_of(pairs)
    if len(runs) < LEAST_RUNS:
        raise UsageError(f"--suspects: {len(runs)} runs are named; it needs at least {LEAST_RUNS}")
    columns = dict.fromkeys((column.task, str(column)) for pair in pairs for column in pair.columns)
    found = [one for task, key in columns if (one := _suspects(runs, task, key)) is not None]
    if not found:
        raise UsageError(
            f"--suspects: no metric has scores of {LEAST_RUNS} runs over the same documents; compare runs that have "
            "answered the same task"
        )
    return found


def suspect_lines(found: Sequence[Suspects], alpha: float) -> Iterator[str]:
    """Yield a line for each column with suspects, or one line if no column has any."""
    having = [one for one in found if one.found]
    yield from (one.line(alpha) for one in having)
    if not having:
        yield f"no document is suspect over {max(len(one.runs) for one in found)} runs"


def _suspects(runs: Sequence[RunRows], task: str, key: str) -> Suspects | None:
    """Find the suspects of a column; ``None`` if fewer than four runs have it, or all scores are equal."""
    import numpy as np

    having = {run.name: run.tasks[task] for run in runs if task in run.tasks and key in run.tasks[task].columns}
    if len(having) < LEAST_RUNS:
        return None
    tasks = list(having.values())
    rows = common_rows(tasks)
    scores = np.stack([one.columns[key].scores[rows[:, place]] for place, one in enumerate(tasks)], axis=1)
    has_all = np.isfinite(scores).all(axis=1)
    rows, scores = rows[has_all], scores[has_all]
    if not len(scores) or scores.min() == scores.max():  # such as a count of documents
        return None
    column = tasks[0].columns[key]
    sign = -1.0 if any(one.columns[key].higher_is_better is False for one in tasks) else 1.0
    answers = _Answers(tasks, rows)
    votes = _votes(sign * scores, answers)
    by_scores = suspicion(sign * scores)
    found = [
        _suspect(number, scores[number], answers, (by_scores, votes)) for number in _order(by_scores.correlation, votes)
    ]
    return Suspects(task, metric_text(column.metric, column.filter), list(having), len(scores), found, bool(votes))


class _Answers:
    """The answers of all runs, read from their files when they are asked for."""

    def __init__(self, tasks: Sequence[TaskRows], rows: NDArray[intp]) -> None:
        self.tasks, self.rows = tasks, rows

    def of(self, number: int) -> list[DocumentTexts | None]:
        """Return the answers to a document by run; ``None`` if a run's files do not contain it."""
        return [task.answer(int(row)) for task, row in zip(self.tasks, self.rows[number], strict=True)]

    def hash(self, number: int) -> str | None:
        """Return the document's hash from the first run that has one."""
        found = (
            task.hashes[int(row)]
            for task, row in zip(self.tasks, self.rows[number], strict=True)
            if task.hashes is not None
        )
        return next((one for one in found if one), None)


_Votes = Sequence[tuple[str, float]]


def _votes(better: NDArray[float64], answers: _Answers) -> _Votes:
    """Return the other answer of each document and its lead; empty if scores are graded or answers of many kinds."""
    low, high = float(better.min()), float(better.max())
    documents = len(better)
    right = better == high
    if low == high or not ((better == low) | right).all():
        return ()
    texts = []
    for number in range(documents):
        of_runs = answers.of(number)
        if any(one is None for one in of_runs):
            return ()
        texts.append([_normal(one.text) for one in of_runs if one is not None])
    if any(2 * len({row[run] for row in texts}) > documents for run in range(better.shape[1])):
        return ()
    weights = vote_weights(right.mean(axis=0).tolist(), documents)
    return [vote_against(row, is_right, weights) for row, is_right in zip(texts, right.tolist(), strict=True)]


def _normal(text: str) -> str:
    return " ".join(text.split()).casefold().rstrip(".")


def _order(correlation: NDArray[float64], votes: _Votes) -> list[int]:
    """Return the suspects' numbers: by votes against the reference answer, then by correlation."""
    import numpy as np

    lead = np.array([one[1] for one in votes]) if votes else np.full(len(correlation), -np.inf)
    is_suspect = (correlation < 0) | (lead > 0)
    order = np.lexsort((np.nan_to_num(correlation, nan=0.0), -lead))
    return [number for number in order.tolist() if is_suspect[number]]


def _suspect(number: int, scores: NDArray[float64], answers: _Answers, found: tuple[Suspicion, _Votes]) -> Suspect:
    by_scores, votes = found
    texts = answers.of(number)
    correlation = float(by_scores.correlation[number])
    other, lead = votes[number] if votes else ("", -math.inf)
    row = int(answers.rows[number, 0])
    return Suspect(
        id=answers.tasks[0].ids[row],
        hash=answers.hash(number),
        target=next((one.target for one in texts if one is not None), None),
        share=float(scores.mean()),
        correlation=correlation if math.isfinite(correlation) else None,
        p=by_scores.p[number],
        q=by_scores.q[number],
        other_answer=other,
        lead=lead if math.isfinite(lead) else None,
        scores=scores.tolist(),
        answers=[None if one is None else one.text for one in texts],
    )


def suspects_csv(found: Sequence[Suspects]) -> Iterator[str]:
    """Format suspects as CSV, line by line: one for each document. Texts are escaped to prevent formulas."""
    runs = list(dict.fromkeys(run for one in found for run in one.runs))
    names = ["task", "metric", "rank", "id", "hash", "target", "share_right", "statistic", "p", "q"]
    names += ["other_answer", "lead", *(f"{part} {run}" for part in ("score", "answer") for run in runs)]
    text = io.StringIO()
    writer = csv.DictWriter(text, [no_formula(name) for name in names], restval="", lineterminator="\n")
    writer.writeheader()
    for suspects in found:
        for rank, one in enumerate(suspects.found, start=1):
            writer.writerow({no_formula(name): _cell(value) for name, value in _line(suspects, rank, one).items()})
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()


def _cell(value: object) -> object:
    return no_formula(value) if isinstance(value, str) else value


def _line(suspects: Suspects, rank: int, one: Suspect) -> Mapping[str, object]:
    scores = {f"score {run}": score for run, score in zip(suspects.runs, one.scores, strict=True)}
    answers = {f"answer {run}": answer for run, answer in zip(suspects.runs, one.answers, strict=True)}
    return {
        "task": suspects.task,
        "metric": suspects.metric,
        "rank": rank,
        "id": one.id,
        "hash": one.hash,
        "target": one.target,
        "share_right": one.share,
        "statistic": one.correlation,
        "p": one.p,
        "q": one.q,
        "other_answer": one.other_answer,
        "lead": one.lead,
        **scores,
        **answers,
    }
