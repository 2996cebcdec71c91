"""Summary of the outcomes of a task's items.

Each task has two numbers. ``official`` leaves out items without a usable answer, as the authors' scorer does.
``strict`` counts them as wrong (General-Bench specification §10.3). If a metric has no worst value (an error, a
distance between distributions), the mapped score of the answered items is multiplied by their share.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from lmms_eval import stats
from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import LmmsEvalError
from lmms_eval.tasks.general_bench.facts import Metric, TaskFacts, metrics, tasks_by_id
from lmms_eval.tasks.general_bench.levels.formulas import paper_score, paper_value
from lmms_eval.tasks.general_bench.levels.registering import LevelResult
from lmms_eval.tasks.general_bench.measures.contract import Measure, State
from lmms_eval.tasks.general_bench.measures.text_math import BY_WORDS, tokenizer_label
from lmms_eval.tasks.general_bench.scoring import ItemOutcome, failure_note

KEY = "general_bench"
"""Key of a task's score in its estimate's details."""
_DRAWS = 100
_MOST_STATES = 200_000
"""Most states in all resamplings of a task together."""
_SHOWN = 3


class TaskScore(Struct, frozen=True):
    """The numbers of one task, in the unit of the result table."""

    task: str
    """``TaskFacts.id``."""
    measure: str
    official: float | None
    """Value over the answered items, or ``None`` without any."""
    strict: float | None
    """Value with the others as wrong, or ``None`` without answers if the metric has no worst value."""
    stderr: float | None
    """Standard error of ``strict``, over the items."""
    answered: int
    expected: int
    failed: int = 0
    notes: tuple[str, ...] = ()
    """Most common reasons of unanswered and failed items."""
    withheld: str = ""
    """Reason why there is no score: not evaluated, or items failed."""
    absent: int = 0
    """Number of items without a prediction, or without its file."""

    @property
    def facts(self) -> TaskFacts:
        return tasks_by_id()[self.task]

    @property
    def metric(self) -> Metric:
        return metrics()[self.facts.metric]

    @property
    def status(self) -> str:
        """``scored``, ``partially answered``, ``unanswered``, ``failed`` or ``not evaluated``."""
        if self.withheld:
            return "failed" if self.failed else "not evaluated"
        if self.answered == self.expected:
            return "scored"
        return "partially answered" if self.answered else "unanswered"

    def result(self, is_strict: bool = True) -> LevelResult | None:
        """Return the row of the result table, or ``None`` if there is no score."""
        value = self.strict if is_strict else self.official
        if self.withheld or value is None:
            return None
        facts = self.facts
        return LevelResult(
            task_name=facts.name,
            metric=facts.spelling,
            score=value,
            modality=facts.modality,
            task_type=facts.paradigm,
            unit=self.metric.unit,
            source=self.task,
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "task": self.task,
            "measure": self.measure,
            **({"words": tokenizer_label()} if self.measure == BY_WORDS else {}),
            "status": self.status,
            "official": self.official,
            "strict": self.strict,
            "stderr": self.stderr,
            "unit": self.metric.unit,
            "answered": self.answered,
            "expected": self.expected,
            "failed": self.failed,
            "absent": self.absent,
            "notes": list(self.notes),
            "withheld": self.withheld,
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> TaskScore:
        """Read the result of ``as_dict``, also after serialisation as JSON."""
        return cls(
            given["task"], given["measure"], given["official"], given["strict"], given["stderr"], given["answered"],
            given["expected"], given["failed"], tuple(given["notes"]), given["withheld"], absent=given["absent"],
        )  # fmt: skip


def not_evaluated(facts: TaskFacts, measure: str, reason: str, expected: int = 0) -> TaskScore:
    """Return the score of a task that cannot be evaluated here."""
    return TaskScore(facts.id, measure, None, None, None, 0, expected, withheld=f"not evaluated: {reason}")


def broken(facts: TaskFacts, measure: str, reason: str, expected: int = 0) -> TaskScore:
    """Return the score of a task with unusable data."""
    return TaskScore(facts.id, measure, None, None, None, 0, expected, max(expected, 1), withheld=reason)


def combine(facts: TaskFacts, measure: Measure, outcomes: Sequence[ItemOutcome]) -> TaskScore:
    """Compute the task's numbers over all its items, at least one. Failed items withhold them.

    Raises ``NotEvaluated`` if data or a program that the value needs is missing.
    """
    metric = metrics()[facts.metric]
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    answered = [outcome.state for outcome in outcomes if outcome.status == "answered"]
    found = Counter(outcome.note for outcome in outcomes if outcome.note)
    notes = tuple(f"{note} ({count} items)" if count > 1 else note for note, count in found.most_common(_SHOWN))
    if failed:
        reason = f"{len(failed)} of {len(outcomes)} items failed: {failed[0].note}"
        return TaskScore(
            facts.id, measure.name, None, None, None, len(answered), len(outcomes), len(failed), notes, reason
        )
    try:
        official, strict = _values(metric, measure, outcomes)
        stderr = _strict_stderr(metric, measure, outcomes, official)
    except NotEvaluated:
        raise
    except Exception as error:  # noqa: BLE001 - measures call libraries on what a model wrote: one task fails
        reason = failure_note(error, measure)
        return TaskScore(facts.id, measure.name, None, None, None, len(answered), len(outcomes), 1, notes, reason)
    absent = sum(outcome.status == "absent" for outcome in outcomes)
    return TaskScore(
        facts.id, measure.name, official, strict, stderr, len(answered), len(outcomes), 0, notes, absent=absent
    )


def strict_value(facts: TaskFacts, measure: Measure, outcomes: Sequence[ItemOutcome]) -> float | None:
    """Compute only ``TaskScore.strict``, without its error, of items that have not failed.

    Raises:
        LmmsEvalError: the items have no value together; others that the measure's libraries raise.
    """
    return _values(metrics()[facts.metric], measure, outcomes)[1]


def _values(metric: Metric, measure: Measure, outcomes: Sequence[ItemOutcome]) -> tuple[float | None, float | None]:
    """Return the value over the answered items, and that with unanswered items counted as wrong."""
    answered = [outcome.state for outcome in outcomes if outcome.status == "answered"]
    official = _finite(measure.value(answered), measure) if answered else None
    share = len(answered) / len(outcomes)
    if share == 1:
        return official, official
    if measure.is_mean or measure.unanswered is not None:
        return official, _finite(measure.value([outcome.state for outcome in outcomes]), measure)
    if official is None:
        return None, 0.0 if not metric.mapping else None
    score = paper_score(metric, official)
    if score == 0:
        return official, official  # a metric without a worst value keeps its value
    return official, paper_value(metric, share * score) if metric.mapping else share * official


def _strict_stderr(
    metric: Metric, measure: Measure, outcomes: Sequence[ItemOutcome], official: float | None
) -> float | None:
    answered = [outcome.state for outcome in outcomes if outcome.status == "answered"]
    share = len(answered) / len(outcomes)
    if share == 1 or measure.is_mean or measure.unanswered is not None:
        return _stderr(measure, [outcome.state for outcome in outcomes])
    error = None if official is None else _stderr(measure, answered)
    return error * share if error is not None and not metric.mapping else None


def _stderr(measure: Measure, states: Sequence[State]) -> float | None:
    """Return the sample error of a mean, else that of the value over resampled items."""
    if len(states) < 2:
        return None
    if measure.is_mean:
        return stats.mean_stderr([float(state) for state in states])
    draws = min(_DRAWS, _MOST_STATES // len(states))
    if measure.is_costly or draws < _DRAWS // 5:
        return None
    try:
        error = stats.bootstrap_stderr(measure.value, states, draws)
    except LmmsEvalError:  # if some draws have no value (items of one class only), there is no error either
        return None
    return error if math.isfinite(error) else None


def _finite(value: float, measure: Measure) -> float:
    if not math.isfinite(value):
        raise LmmsEvalError(f"measure {measure.name}: the value over all items is {value}, no number")
    return value


def evaluated(score: Callable[[], TaskScore], facts: TaskFacts, measure: str, expected: int) -> TaskScore:
    """Compute a task's score by ``score``. If something that it needs is missing, that becomes the reason."""
    try:
        return score()
    except NotEvaluated as error:
        return not_evaluated(facts, measure, error.reason.removeprefix("not evaluated: "), expected)
