"""The score of one query: reply -> fields -> metrics -> aggregate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import TaskError
from lmms_eval.tasks.megabench.aggregation import AGGREGATIONS, NO_SCORE
from lmms_eval.tasks.megabench.conversions.literals import LiteralError, read_literal, unwrap_string
from lmms_eval.tasks.megabench.metrics import MetricSpec
from lmms_eval.tasks.megabench.metrics.values import Scored
from lmms_eval.tasks.megabench.parsers import PARSERS, AnswerShape, Parsed
from lmms_eval.tasks.megabench.task_scoring import TaskScoring


@dataclass(frozen=True, slots=True)
class QueryScore:
    """The outcome of one query."""

    fields: Mapping[str, float]
    """Scores by field; -1 and NaN are left out of the aggregate."""
    info: Mapping[str, Any]
    query: float | None
    """The aggregate, -1 without a countable field; ``None`` if a field could not be evaluated."""
    not_evaluated: Mapping[str, str]
    """Reasons by field."""
    scorer_errors: Mapping[str, str]
    """Errors by field; the field scored 0. The empty name stands for the aggregate."""

    def as_dict(self) -> dict[str, Any]:
        """The ``scores`` entry of a result file."""
        notes = {field: f"not evaluated: {reason}" for field, reason in self.not_evaluated.items()}
        return {"field": dict(self.fields), "info": {**self.info, **notes}, "query": self.query}


@dataclass(frozen=True, slots=True)
class _FieldOutcome:
    score: float = 0.0
    info: Any = None
    missing: str | None = None
    error: str | None = None


def parse_reply(reply: str | None, answer: Mapping[str, Any], spec: TaskScoring) -> Parsed:
    """The parsed response: by field, or what the ``dummy`` and ``unsupported`` parsers found.

    A missing reply is an empty one. With the ``json`` parser a reply without a dictionary stands for every field.
    """
    reply = reply or ""
    shape = AnswerShape("", single_line=False)
    if spec.answer_field is not None:
        shape = AnswerShape(spec.answer_field, single_line=_is_single_line(answer.get(spec.answer_field)))
    parsed = PARSERS[spec.parser](reply, shape)
    if spec.parser == "json" and not (isinstance(parsed, dict) and parsed):
        return dict.fromkeys(answer, reply)
    return parsed


def read_context(value: Any) -> Mapping[str, Any]:
    """The evaluation context of a sample from its Python literal; empty if it is malformed (the metric then fails)."""
    if isinstance(value, str):
        try:
            value = read_literal(value)
        except LiteralError:
            return {}
    return value if isinstance(value, Mapping) else {}


def score_query(
    reply: str | None, answer: Mapping[str, Any], spec: TaskScoring, context: Mapping[str, Any]
) -> QueryScore:
    """Score every field that has a metric and is in the true answer, then the auxiliary metrics.

    An exception inside a metric scores 0 and is kept in ``scorer_errors``; a metric whose judge, program or data is
    missing leaves the query without a score.
    """
    parsed = parse_reply(reply, answer, spec)
    outcomes: dict[str, _FieldOutcome] = {}
    for field, truth in answer.items():
        metric = spec.metrics.get(field)
        if metric is not None:
            target = context if metric.needs_context else unwrap_string(truth)
            outcomes[field] = _score_field(metric, _response(metric, parsed, field), target)
    for name, metric in spec.auxiliary.items():
        outcomes[name] = _score_field(metric, parsed, context if metric.needs_context else answer)
    return _collect(outcomes, spec)


def _is_single_line(truth: Any) -> bool:
    """Membership also in lists, as in the official evaluator."""
    return "\n" not in truth if isinstance(truth, str | list | tuple | dict | set) else True


def _response(metric: MetricSpec, parsed: Parsed, field: str) -> Any:
    """The value for a field; ``None`` where the reply has none."""
    if isinstance(parsed, dict):
        return parsed.get(field)
    return parsed if metric.reads_text and isinstance(parsed, str) else None


def _score_field(metric: MetricSpec, response: Any, target: Any) -> _FieldOutcome:
    try:
        value = metric.load()(response, target)
    except NotEvaluated as missing:
        return _FieldOutcome(missing=missing.reason)
    except Exception as error:  # noqa: BLE001 - the benchmark scores 0 whatever a metric raises on a sample
        text = f"{type(error).__name__}: {error}"
        return _FieldOutcome(info=text if metric.gives_info else None, error=text)
    if isinstance(value, Scored):
        return _FieldOutcome(score=value.score, info=value.info)
    return _FieldOutcome(score=value)


def _collect(outcomes: Mapping[str, _FieldOutcome], spec: TaskScoring) -> QueryScore:
    scores = {field: outcome.score for field, outcome in outcomes.items() if outcome.missing is None}
    missing = {field: outcome.missing for field, outcome in outcomes.items() if outcome.missing is not None}
    errors = {field: outcome.error for field, outcome in outcomes.items() if outcome.error is not None}
    query: float | None = None
    if not missing:
        try:
            query = AGGREGATIONS[spec.aggregation](scores, spec.weights)
        except TaskError as error:  # the fields that are left weigh nothing
            query, errors[""] = NO_SCORE, str(error)
    return QueryScore(
        fields=scores,
        info={field: outcome.info for field, outcome in outcomes.items() if outcome.info is not None},
        query=query,
        not_evaluated=missing,
        scorer_errors=errors,
    )
