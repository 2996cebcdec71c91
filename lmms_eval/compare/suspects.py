"""Documents whose reference answer may be wrong, from the answers of several runs (``docs/compare.md``)."""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.compare.matching import MatchedPair, common_rows, runs_of
from lmms_eval.compare.runs import DocumentTexts, RunRows, TaskRows
from lmms_eval.compare.verdicts import metric_text
from lmms_eval.errors import UsageError
from lmms_eval.stats.suspects import LEAST_DOCUMENTS, LEAST_RUNS, WrongLabels, correlations, suspicion, wrong_labels
from lmms_eval.utils.terminal import no_formula

if TYPE_CHECKING:
    from numpy import bool_, float64, intp
    from numpy.typing import NDArray

_LONGEST_ID = 40
_LEAST_PROBABILITY = 0.1
"""Documents whose reference answer is less likely to be wrong are not listed."""
_RUNS_TO_CHECK = 6
"""Least number of runs whose answers can check the model."""
_FEW_KINDS = 30
"""Largest number of different answers that count as options, such as letters."""
_LEAST_AGREEMENT = 0.1
"""Share of pairs of wrong answers that must be equal if there are more kinds; long texts never agree."""
_LETTER = re.compile(r"[(\[]?([a-z])(?:[)\].:,]|\Z)")


By = Literal["answers", "scores", "correlation"]


class Suspect(Struct, frozen=True):
    """A document whose scores or answers speak against its reference answer."""

    id: str
    hash: str | None
    target: str | None
    share: float
    """Mean score over the runs."""
    correlation: float | None
    """Correlation of its scores with the runs' means over the other documents; ``None`` if all scores are equal."""
    scores: Sequence[float]
    answers: Sequence[str | None]
    probability: float | None = None
    """Probability that the reference answer is wrong; ``None`` if ``Suspects.not_known`` has the reason."""
    other_answer: str = ""
    """The most probable right answer if the reference answer is wrong; empty if no run gave it, or if it is unknown."""
    p: float | None = None
    """Of graded scores: p of the hypothesis that better runs do no worse."""
    q: float | None = None


class Suspects(Struct, frozen=True):
    """The suspects of one task and metric, the most suspicious first."""

    task: str
    metric: str
    runs: Sequence[str]
    documents: int
    """Documents that all runs have scored."""
    found: Sequence[Suspect]
    by: By
    """What the order follows: a model of right and of equal wrong answers, of right answers, or correlations."""
    not_known: str = ""
    """Why there are no probabilities; empty if there are."""
    expected: float = 0.0
    """Expected number of wrong reference answers among all documents, if it is known."""

    def line(self, alpha: float, most: int = 3) -> str:
        """Return a line that names the first suspects, with how many are expected to be wrong."""
        first = ", ".join(one.id[:_LONGEST_ID] for one in self.found[:most])
        return (
            f"{self.task} {self.metric}: {len(self.found):,} of {self.documents:,} documents are suspect over "
            f"{len(self.runs)} runs, by {self.by}{f': {first}' if first else ''}"
            f"{', ...' if len(self.found) > most else ''}; {self._certainty(alpha)}"
        )

    def _certainty(self, alpha: float) -> str:
        if self.by == "correlation":
            return f"{sum(one.q is not None and one.q <= alpha for one in self.found):,} with q ≤ {alpha:g}"
        if self.not_known:
            return f"share of wrong reference answers not known: {self.not_known}"
        first = self.found[:100]
        expected = math.fsum(one.probability or 0.0 for one in first)
        return (
            f"wrong reference answers expected: {expected:.0f} of the first {len(first)}, "
            f"{self.expected:.0f} of all documents"
        )


def find_suspects(pairs: Sequence[MatchedPair]) -> list[Suspects]:
    """Find the suspect documents of every compared task and metric that at least four runs have.

    If scores are right or wrong, an item response model yields the probability that a reference answer is wrong: of
    right and of equal wrong answers, if wrong ones are ever equal, else of right answers alone. A document is suspect
    if this probability is at least 0.1. If scores are graded or the probability is not known well, a document is also
    suspect if better runs do worse at it (its correlation is negative).

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
    better = sign * scores
    labels = _labels(better, answers)
    not_known = "" if labels is None else labels.not_known(list(having))
    correlation = correlations(better)
    order = _order(correlation, labels, not not_known)
    found = [_suspect(number, scores[number], float(correlation[number]), answers) for number in order]
    if labels is None:
        tested = suspicion(better)
        found = [replace(one, p=tested.p[number], q=tested.q[number]) for number, one in zip(order, found, strict=True)]
    else:
        found = [labels.stated(number, one, not not_known) for number, one in zip(order, found, strict=True)]
    by: By = "correlation" if labels is None else labels.by
    expected = 0.0 if labels is None else labels.found.expected()
    metric = metric_text(column.metric, column.filter)
    return Suspects(task, metric, list(having), len(scores), found, by, not_known, expected)


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


class _Labels(Struct, frozen=True):
    """Inference about the reference answers of right-or-wrong scores."""

    found: WrongLabels
    kinds: NDArray[intp]
    """Documents × runs; 0 is right, equal numbers are equal wrong answers."""
    by: Literal["answers", "scores"]

    def not_known(self, runs: Sequence[str]) -> str:
        """Return why probabilities cannot be trusted; empty if they can."""
        documents, count = self.kinds.shape
        if documents < LEAST_DOCUMENTS:
            return f"fewer than {LEAST_DOCUMENTS} documents"
        if count < _RUNS_TO_CHECK:
            return f"fewer than {_RUNS_TO_CHECK} runs"
        if self.by == "scores":
            return "without answers it does not show whether runs share their mistakes"
        if self.found.misfit is None:
            return ""
        first, second, observed, expected = self.found.misfit
        return (
            f"{runs[first]} and {runs[second]} give {observed:,} equal wrong answers, {expected:,.0f} expected of "
            "independent runs"
        )

    def stated(self, number: int, suspect: Suspect, is_known: bool) -> Suspect:
        """Add the probability, and the answer that is right if the reference answer is wrong."""
        probability = float(self.found.probability[number]) if is_known else None
        other = int(self.found.other[number])
        places = (self.kinds[number] == other).nonzero()[0].tolist()
        text = suspect.answers[places[0]] if self.by == "answers" and other and places else None
        return replace(suspect, probability=probability, other_answer=" ".join((text or "").split()))


def _labels(better: NDArray[float64], answers: _Answers) -> _Labels | None:
    """Infer which reference answers are wrong; ``None`` if scores are graded."""
    import numpy as np

    low, high = float(better.min()), float(better.max())
    right = better == high
    if low == high or not ((better == low) | right).all():
        return None
    found = _kinds(right, answers)
    if found is None:
        kinds = (~right).astype(np.intp)
        return _Labels(wrong_labels(kinds, None), kinds, "scores")
    kinds, options = found
    return _Labels(wrong_labels(kinds, options), kinds, "answers")


def _kinds(right: NDArray[bool_], answers: _Answers) -> tuple[NDArray[intp], int] | None:
    """Number the different wrong answers of each document; ``None`` if they are not known, or too long to be equal.

    Also returns how many wrong answers a document may have: the most that were given, or 0 if answers are open.
    """
    import numpy as np

    kinds = np.zeros(right.shape, dtype=np.intp)
    names: set[str] = set()
    equal = pairs = 0
    for number, is_right in enumerate(right.tolist()):
        known = [one for one in answers.of(number) if one is not None]
        if len(known) < len(is_right):
            return None
        wrong = [(run, _normal(known[run])) for run, one in enumerate(is_right) if not one]
        numbers: dict[str, int] = {}
        for run, text in wrong:
            kinds[number, run] = numbers.setdefault(text, len(numbers) + 1)
        names.update(numbers)
        same = [first[1] == second[1] for first, second in itertools.combinations(wrong, 2)]
        equal, pairs = equal + sum(same), pairs + len(same)
    is_open = len(names) > _FEW_KINDS
    if equal < _LEAST_AGREEMENT * pairs or not equal:
        return None
    return kinds, 0 if is_open else max(2, int(kinds.max()))


def _normal(text: DocumentTexts) -> str:
    """Return an answer without what does not distinguish it: its letter, if the reference answer is one."""
    answer, target = (" ".join(one.split()).casefold() for one in (text.text, text.target))
    letter = _LETTER.match(answer) if len(target) == 1 or _LETTER.fullmatch(target) else None
    return letter[1] if letter is not None else answer.rstrip(".")


def _order(correlation: NDArray[float64], labels: _Labels | None, is_known: bool) -> list[int]:
    """Return the suspects' numbers: by the probability of a wrong reference answer, then by correlation."""
    import numpy as np

    correlation = np.nan_to_num(correlation, nan=0.0)
    probability = np.zeros(len(correlation)) if labels is None else labels.found.probability
    is_suspect = probability >= _LEAST_PROBABILITY
    if labels is None or not is_known:
        is_suspect |= correlation < 0
    order = np.lexsort((correlation, -probability))
    return [number for number in order.tolist() if is_suspect[number]]


def _suspect(number: int, scores: NDArray[float64], correlation: float, answers: _Answers) -> Suspect:
    texts = answers.of(number)
    row = int(answers.rows[number, 0])
    return Suspect(
        id=answers.tasks[0].ids[row],
        hash=answers.hash(number),
        target=next((one.target for one in texts if one is not None), None),
        share=float(scores.mean()),
        correlation=correlation if math.isfinite(correlation) else None,
        scores=scores.tolist(),
        answers=[None if one is None else one.text for one in texts],
    )


def suspects_csv(found: Sequence[Suspects]) -> Iterator[str]:
    """Format suspects as CSV, line by line: one for each document. Texts are escaped to prevent formulas."""
    runs = list(dict.fromkeys(run for one in found for run in one.runs))
    names = ["task", "metric", "rank", "id", "hash", "target", "share_right"]
    names += ["probability", "expected_wrong", "other_answer", "statistic", "p", "q"]
    names += [*(f"{part} {run}" for part in ("score", "answer") for run in runs)]
    text = io.StringIO()
    writer = csv.DictWriter(text, [no_formula(name) for name in names], restval="", lineterminator="\n")
    writer.writeheader()
    for suspects in found:
        expected = 0.0
        for rank, one in enumerate(suspects.found, start=1):
            line = _line(suspects, rank, one)
            if one.probability is not None:
                expected += one.probability
                line["expected_wrong"] = expected / rank
            writer.writerow({no_formula(name): _cell(value) for name, value in line.items()})
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()


def _cell(value: object) -> object:
    return no_formula(value) if isinstance(value, str) else value


def _line(suspects: Suspects, rank: int, one: Suspect) -> dict[str, object]:
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
        "probability": one.probability,
        "other_answer": one.other_answer,
        "statistic": one.correlation,
        "p": one.p,
        "q": one.q,
        **scores,
        **answers,
    }
