"""Scores one query: reply -> fields -> metrics -> aggregate."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import TaskError
from lmms_eval.tasks.megabench.conversions.fences import extract_fence, extract_json_fence
from lmms_eval.tasks.megabench.conversions.literals import LiteralError, read_literal, unwrap_string
from lmms_eval.tasks.megabench.conversions.structures import answer_part
from lmms_eval.tasks.megabench.metrics import SANDBOX, Metric, MetricSpec
from lmms_eval.tasks.megabench.metrics.values import DetailedScore, OutsideData
from lmms_eval.tasks.megabench.scoring.parsers import (
    PARSERS,
    STRING_PARSERS,
    AnswerShape,
    Parsed,
    is_repaired,
    marked_answer,
    parse_repaired,
)
from lmms_eval.tasks.megabench.scoring.task_spec import AGGREGATIONS, NO_SCORE, TaskSpec

LONGEST = 160
"""Most characters of an extracted value; the sample holds the whole reply."""


class ReplyReading(Struct, frozen=True):
    """The reading of a reply into the values of its fields."""

    rule: str
    """``marker`` (the answer followed ``Answer:``, as asked) or ``whole reply``, with ``code block`` and ``fields
    missing`` behind it; ``no answer`` of an empty reply; ``unparsed`` where no field could be read."""
    missing: tuple[str, ...]
    """Scored fields that the reply lacks."""
    extracted: dict[str, str]
    """The beginnings of the values that the metrics received."""

    def as_dict(self) -> dict[str, Any]:
        """Return the facts for the sample; empty lists and values are left out."""
        facts: dict[str, Any] = {"rule": self.rule}
        if self.missing:
            facts["missing"] = list(self.missing)
        return facts | ({"extracted": self.extracted} if self.extracted else {})


def read_reply(reply: str, parsed: Parsed, parser: str, fields: Collection[str]) -> ReplyReading:
    """Describe how a reply was parsed.

    Args:
        reply: the reply.
        parsed: the result of its parser (``query.parse_reply``).
        parser: the parser's lower-case name.
        fields: the scored fields.
    """
    if not reply.strip():
        return ReplyReading("no answer", tuple(fields), {})
    if parser == "dummy":
        return ReplyReading("whole reply", (), {})
    found = parsed if isinstance(parsed, dict) else {}
    if parser == "json" and found and all(value is reply for value in found.values()):
        found = {}  # nothing could be read: the whole reply is the value of every field
    given = {field: found[field] for field in fields if found.get(field) not in (None, "")}
    if not given and fields:
        return ReplyReading("unparsed", tuple(fields), {})
    missing = tuple(field for field in fields if field not in given)
    is_text = parser in STRING_PARSERS
    part = marked_answer(reply) if is_text else answer_part(reply)
    is_fenced = (extract_fence if is_text else extract_json_fence)(part.text).found
    rule = "marker" if part.found else "whole reply"
    rule += (", code block" if is_fenced else "") + (", fields missing" if missing else "")
    extracted: dict[str, str] = {}
    for field, value in given.items():
        try:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        except (TypeError, ValueError, RecursionError):  # keys that are not texts, numbers of thousands of digits
            text = type(value).__name__
        extracted[field] = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return ReplyReading(rule, missing, extracted)


class FixedScore(Struct, frozen=True):
    """A query's score with the faults repaired that scoring rules §3 lists; reported with the official one."""

    fields: Mapping[str, float]
    """The fields whose score differs."""
    query: float


class QueryScore(Struct, frozen=True):
    """The outcome of one query."""

    fields: Mapping[str, float]
    """Scores by field; the aggregate ignores -1 and NaN."""
    info: Mapping[str, Any]
    query: float | None
    """The aggregate, -1 without a countable field; ``None`` if a field could not be evaluated."""
    not_evaluated: Mapping[str, str]
    """Reasons by field."""
    scorer_errors: Mapping[str, str]
    """Errors by field; the field scored 0. The empty name represents the aggregate."""
    fixed: FixedScore | None = None
    """The score without faults of the official evaluator; ``None`` if they change nothing."""
    reading: ReplyReading | None = None
    """How the reply was parsed; not part of a result file."""

    def as_dict(self) -> dict[str, Any]:
        """The ``scores`` entry of a result file."""
        notes = {field: f"not evaluated: {reason}" for field, reason in self.not_evaluated.items()}
        scores = {"field": dict(self.fields), "info": {**self.info, **notes}, "query": self.query}
        if self.fixed is not None:
            scores["fixed"] = {"field": dict(self.fixed.fields), "query": self.fixed.query}
        return scores


class _FieldOutcome(Struct, frozen=True):
    score: float = 0.0
    info: Any = None
    missing: str | None = None
    error: str | None = None


def parse_reply(reply: str | None, answer: Mapping[str, Any], spec: TaskSpec, *, repaired: bool = False) -> Parsed:
    """Return the parsed response: by field, or the value of the ``dummy`` and ``unsupported`` parsers.

    A missing reply is an empty one. With the ``json`` parser a reply without a dictionary is the value of every field.
    ``repaired``: see ``parse_repaired``.
    """
    reply = reply or ""
    shape = AnswerShape("", single_line=False)
    if spec.answer_field is not None:
        truth: Any = answer.get(spec.answer_field)
        if isinstance(truth, str):
            has_break = "\n" in truth or len(truth.splitlines()) > 1
        else:  # of a list or dictionary only a member that is a line break counts
            has_break = isinstance(truth, list | tuple | dict | set) and "\n" in truth
        shape = AnswerShape(spec.answer_field, single_line=not has_break)
    parsed = parse_repaired(spec.parser, reply, shape) if repaired else PARSERS[spec.parser](reply, shape)
    if spec.parser == "json" and not (isinstance(parsed, dict) and parsed):
        return dict.fromkeys(answer, reply)
    return parsed


def read_context(value: Any) -> Mapping[str, Any]:
    """Read the evaluation context of a sample from its Python literal; empty if malformed (the metric then fails)."""
    if isinstance(value, str):
        if value == "{}":  # of most samples
            return {}
        try:
            value = read_literal(value)
        except LiteralError:
            return {}
    return value if isinstance(value, Mapping) else {}


def score_query(
    reply: str | None,
    answer: Mapping[str, Any],
    spec: TaskSpec,
    context: Mapping[str, Any],
    verdicts: Mapping[str, Verdict] | None = None,
    data: OutsideData | None = None,
) -> QueryScore:
    """Score every field that has a metric and is in the true answer, then the auxiliary metrics.

    ``verdicts``: the judge's replies to the questions of ``judge_questions``, by name. ``data``: the places of data
    outside the documents.

    An exception inside a metric scores 0 and is kept in ``scorer_errors``; a metric whose judge, program or data is
    missing leaves the query without a score.
    """
    parsed = parse_reply(reply, answer, spec)
    fields = [field for field in answer if field in spec.metrics]
    targets: list[_Target] = []
    for field in fields:
        metric = spec.metrics[field]
        targets.append((field, metric, context if metric.needs_context else unwrap_string(answer[field])))
    for name, metric in spec.auxiliary.items():
        targets.append((name, metric, context if metric.needs_context else answer))
    outcomes: dict[str, _FieldOutcome] = {}

    def verdict_of(name: str, metric: MetricSpec) -> tuple[Verdict | None]:
        if spec.judge is not None and metric.reads_text:
            spec.judge.check(answer, context)
        return ((verdicts or {}).get(name),)

    for name, metric, target in targets:
        response = parsed if name in spec.auxiliary else response_of(metric, parsed, name)
        verdict = partial(verdict_of, name, metric) if metric.judged else tuple
        outcomes[name] = _score_field(partial(metric.load, data), response, target, metric.gives_info, verdict)
    scores = {field: outcome.score for field, outcome in outcomes.items() if outcome.missing is None}
    missing = {field: outcome.missing for field, outcome in outcomes.items() if outcome.missing is not None}
    errors = {field: outcome.error for field, outcome in outcomes.items() if outcome.error is not None}
    query: float | None = None
    if not missing:
        try:
            query = AGGREGATIONS[spec.aggregation](scores, spec.weights)
        except TaskError as error:  # the fields that are left weigh nothing
            query, errors[""] = NO_SCORE, str(error)
    official = QueryScore(
        fields=scores,
        info={field: outcome.info for field, outcome in outcomes.items() if outcome.info is not None},
        query=query,
        not_evaluated=missing,
        scorer_errors=errors,
        reading=read_reply(reply or "", parsed, spec.parser, fields),
    )
    if query is None:
        return official
    if is_reread := is_repaired(spec.parser, reply or ""):
        parsed = parse_reply(reply, answer, spec, repaired=True)
    changing = [
        (name, metric, target) for name, metric, target in targets if not metric.judged and (metric.fixed or is_reread)
    ]
    return replace(official, fixed=_fixed(official, parsed, changing, spec, data)) if changing else official


_Target = tuple[str, MetricSpec, Any]
"""Name, metric and target of a score."""


def _fixed(
    official: QueryScore, repaired: Parsed, targets: Iterable[_Target], spec: TaskSpec, data: OutsideData | None
) -> FixedScore | None:
    """Return the score with the faults repaired, of the fields that no judge scores; ``None`` if nothing changes."""
    changed: dict[str, float] = {}
    for name, metric, target in targets:
        if metric.needs == SANDBOX and official.fields[name] == 1.0:  # it passes every test, so it is not run again
            continue
        response = repaired if name in spec.auxiliary else response_of(metric, repaired, name)
        outcome = _score_field(partial(metric.load_fixed, data), response, target, metric.gives_info)
        if outcome.missing is None and outcome.score != official.fields[name] and not math.isnan(outcome.score):
            changed[name] = outcome.score
    if not changed:
        return None
    try:
        return FixedScore(changed, AGGREGATIONS[spec.aggregation]({**official.fields, **changed}, spec.weights))
    except TaskError:  # the remaining fields have no weight, as in the official score
        return None


def response_of(metric: MetricSpec, parsed: Parsed, field: str) -> Any:
    """Return the value for a field; ``None`` if the reply has none."""
    if isinstance(parsed, dict):
        return parsed.get(field)
    return parsed if metric.reads_text and isinstance(parsed, str) else None


def _score_field(
    load: Callable[[], Metric],
    response: Any,
    target: Any,
    gives_info: bool,
    verdict: Callable[[], tuple[Verdict | None, ...]] = tuple,
) -> _FieldOutcome:
    try:
        value = load()(response, target, *verdict())
    except NotEvaluated as missing:
        return _FieldOutcome(missing=missing.reason)
    except Exception as error:  # noqa: BLE001 - the benchmark scores 0 whatever a metric raises on a sample
        text = f"{type(error).__name__}: {error}"
        return _FieldOutcome(info=text if gives_info else None, error=text)
    if isinstance(value, DetailedScore):
        return _FieldOutcome(score=value.score, info=value.info)
    return _FieldOutcome(score=value)
