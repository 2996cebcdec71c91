"""The scoring of a task from its ``metric_info``, checked before anything is scored."""

from __future__ import annotations

import functools
import math
import string
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from lmms_eval.errors import TaskError
from lmms_eval.tasks.megabench.conversions.literals import LiteralError, read_literal
from lmms_eval.tasks.megabench.metrics import METRICS, UNSUPPORTED, MetricSpec
from lmms_eval.tasks.megabench.scoring.parsers import PARSERS, STRING_PARSERS
from lmms_eval.tasks.megabench.summary import EvalType

NO_SCORE = -1.0


def weighted_mean(scores: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Mean of the scores that are 0 or more, -1 without one.

    Raises ``TaskError`` for a field without a weight or weights that sum to zero.
    """
    counted = _counted(scores)
    if not counted:
        return NO_SCORE
    missing = [name for name in counted if name not in weights]
    if missing:
        raise TaskError(f"field_weights has no weight for {', '.join(map(repr, missing))}")
    total = math.fsum(weights[name] for name in counted)
    if total == 0:
        raise TaskError(f"the weights of {', '.join(map(repr, counted))} sum to zero")
    return math.fsum(weights[name] * score for name, score in counted.items()) / total


def minimum(scores: Mapping[str, float], _weights: Mapping[str, float]) -> float:
    """The least score that is 0 or more, -1 without one."""
    return min(_counted(scores).values(), default=NO_SCORE)


def unsupported(_scores: Mapping[str, float], _weights: Mapping[str, float]) -> float:
    """Return -1: there is no aggregation."""
    return NO_SCORE


Aggregation = Callable[[Mapping[str, float], Mapping[str, float]], float]
AGGREGATIONS: Mapping[str, Aggregation] = MappingProxyType(
    {"mean": weighted_mean, "min": minimum, "unsupported": unsupported}
)
"""Aggregations by lower-case name."""


def _counted(scores: Mapping[str, float]) -> dict[str, float]:
    """Return the scores without negative ones and NaN."""
    for name, score in scores.items():
        if not isinstance(score, int | float):
            raise TaskError(f"the score of field {name!r} must be a number, not {score!r}")
    return {name: score for name, score in scores.items() if score >= 0}


NOTE_PREFIX = "##"
"""Prefix of truth fields that the string parsers ignore."""
_JUDGE = "gpt_4o_as_judge"


class JudgePrompt(Struct, frozen=True):
    """The configuration of the judge (``gpt4o_eval_configs``)."""

    template: str
    """A format string of Python."""
    with_image: bool
    sources: Mapping[str, str]
    """Placeholder -> ``model_output``, ``example_question``, ``answers.FIELD`` or ``eval_context.KEY``."""

    def values(self, response: Any, question: str, answer: Mapping[str, Any], context: Mapping[str, Any]) -> Any:
        """Return the values for the placeholders from one sample, as far as it has them."""
        found = {"model_output": response, "example_question": question}
        values: dict[str, Any] = {}
        for name, source in self.sources.items():
            kind, _, rest = str(source).partition(".")
            held, key = {"answers": answer, "eval_context": context}.get(kind, {}), rest.split(".", 1)[0]
            if source in found:
                values[name] = found[source]
            elif key in held:
                values[name] = held[key]
        return values

    def check(self, answer: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        """Raise ``KeyError`` if a sample lacks what the prompt needs."""
        there = self.values("", "", answer, context)
        missing = sorted({name for _, name, _, _ in string.Formatter().parse(self.template) if name} - set(there))
        if missing:
            raise KeyError(f"nothing in this sample fills the placeholders {missing} of the judge's prompt")


class TaskSpec(Struct, frozen=True):
    """Parser, metrics and aggregation of the queries of one task."""

    task_name: str
    parser: str
    metrics: Mapping[str, MetricSpec]
    """Metrics by field, including fields that no truth has, without ``unsupported`` ones."""
    auxiliary: Mapping[str, MetricSpec]
    """Metrics on the whole answer, by the name of their score."""
    aggregation: str
    weights: Mapping[str, float]
    """Weights by field; empty if the aggregation is not a mean."""
    answer_field: str | None
    """The field of the string parsers."""
    judge: JudgePrompt | None

    eval_type: EvalType
    """``llm`` for tasks with a judge metric, else ``rule``."""

    @property
    def library(self) -> str:
        """The first library of the metrics; empty without one."""
        return next(filter(None, (metric.library for metric in (*self.metrics.values(), *self.auxiliary.values()))), "")


def parse_task_spec(metric_info: Any, task_name: str, fields: Collection[str]) -> TaskSpec:
    """Read ``metric_info`` (a mapping or its Python literal); ``fields`` are those of the task's first true answer.

    Without ``field_score_function`` no field has a metric. Raises ``TaskError`` that names the task for unknown
    metrics, parsers or aggregations, missing weights of a mean or weights that sum to zero, several fields with a
    string parser, a metric that needs a field with the ``dummy`` parser, and a missing or unusable judge configuration.
    """
    if isinstance(metric_info, str):
        try:
            metric_info = read_literal(metric_info)
        except LiteralError as error:
            raise TaskError(f"task {task_name}: metric_info is no Python literal: {error}") from error
    info = _mapping(metric_info, task_name, "metric_info")
    parser = _known(info.get("response_parse_function", "dummy"), PARSERS, task_name, "response parser")
    metrics = _metrics(_mapping(info.get("field_score_function", {}), task_name, "field_score_function"), task_name)
    auxiliary = _metrics(_mapping(info.get("global_aux_metrics") or {}, task_name, "global_aux_metrics"), task_name)
    aggregation = _mapping(info.get("aggregation"), task_name, "aggregation")
    function = _known(aggregation.get("function"), AGGREGATIONS, task_name, "aggregation")
    scored = {field: metrics[field] for field in fields if field in metrics}
    if parser == "dummy":
        _check_bare(scored, task_name)
    asked = [field for field in fields if not field.startswith(NOTE_PREFIX)]
    if parser in STRING_PARSERS and len(asked) != 1:
        raise TaskError(f"task {task_name}: a string parser needs exactly one answer field, not {len(asked)}: {asked}")
    return TaskSpec(
        task_name=task_name,
        parser=parser,
        metrics=metrics,
        auxiliary=auxiliary,
        aggregation=function,
        weights=_weights(aggregation, [*scored, *auxiliary], task_name) if function == "mean" else {},
        answer_field=asked[0] if parser in STRING_PARSERS else None,
        judge=_judge_prompt(info, fields, task_name) if any(s.name == _JUDGE for s in metrics.values()) else None,
        eval_type="llm" if any(metric.judged for metric in (*metrics.values(), *auxiliary.values())) else "rule",
    )


@functools.lru_cache(maxsize=1024)
def task_spec(metric_info: str, task_name: str, fields: tuple[str, ...]) -> TaskSpec:
    """Return the cached result of ``parse_task_spec`` for a task."""
    return parse_task_spec(metric_info, task_name, fields)


def _mapping(value: Any, task_name: str, key: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TaskError(f"task {task_name}: {key} must be a mapping, not {type(value).__name__}")
    return value


def _known(name: Any, table: Mapping[str, Any], task_name: str, kind: str) -> str:
    """Return the lower-case name; null means ``unsupported``."""
    if name is None:
        return UNSUPPORTED
    key = str(name).lower()
    if key not in table:
        raise TaskError(f"task {task_name}: unknown {kind} {name!r}; known are {', '.join(sorted(table))}")
    return key


def _metrics(names: Mapping[str, Any], task_name: str) -> Mapping[str, MetricSpec]:
    known = {field: _known(name, METRICS, task_name, f"metric of field {field!r}:") for field, name in names.items()}
    return MappingProxyType({field: METRICS[name] for field, name in known.items() if name != UNSUPPORTED})


def _check_bare(scored: Mapping[str, MetricSpec], task_name: str) -> None:
    """Check that no metric needs fields, which the ``dummy`` parser does not give."""
    for field, metric in scored.items():
        if not metric.reads_text:
            able = ", ".join(name for name, spec in METRICS.items() if spec.reads_text)
            raise TaskError(
                f"task {task_name}: the parser dummy leaves the reply whole, but the metric of field {field!r}, "
                f"{metric.name}, needs a value by field (only {able} do not); name another response_parse_function"
            )


def _weights(aggregation: Mapping[str, Any], scored: Collection[str], task_name: str) -> Mapping[str, float]:
    """Return the weights of a mean. Those of ``scored`` are required; others are kept if they are numbers."""
    stated = _mapping(aggregation.get("field_weights") or {}, task_name, "field_weights")
    weights = {
        field: weight for field, weight in stated.items() if isinstance(weight, int | float) and math.isfinite(weight)
    }
    for field in scored:
        if field in stated and field not in weights:
            raise TaskError(f"task {task_name}: the weight of field {field!r} must be a number, not {stated[field]!r}")
    missing = [field for field in scored if field not in weights]
    if missing:
        raise TaskError(f"task {task_name}: field_weights has no weight for {', '.join(map(repr, missing))}")
    if scored and math.fsum(weights[field] for field in scored) == 0:
        raise TaskError(f"task {task_name}: the field weights sum to zero")
    return MappingProxyType(weights)


def _judge_prompt(info: Mapping[str, Any], fields: Collection[str], task_name: str) -> JudgePrompt:
    config = _mapping(info.get("gpt4o_eval_configs"), task_name, "gpt4o_eval_configs")
    sources = _mapping(config.get("template_mapping"), task_name, "template_mapping")
    template = config.get("eval_criteria_prompt")
    if not isinstance(template, str):
        raise TaskError(f"task {task_name}: eval_criteria_prompt must be a text")
    try:
        placeholders = {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}
    except ValueError as error:
        raise TaskError(f"task {task_name}: eval_criteria_prompt is no format string: {error}") from error
    known = {name for name, source in sources.items() if _is_source(source, fields)}
    unfilled = sorted(placeholders - known)
    if unfilled:
        raise TaskError(f"task {task_name}: nothing fills the placeholders {unfilled} of the judge's prompt")
    return JudgePrompt(template, config.get("judge_model_type") == "with image", MappingProxyType(dict(sources)))


def _is_source(source: Any, fields: Collection[str]) -> bool:
    """Return whether a source is valid. Keys of ``eval_context.KEY`` can be checked only with samples."""
    if source in ("model_output", "example_question"):
        return True
    kind, _, rest = str(source).partition(".")
    name = rest.split(".", 1)[0]
    return bool(name) and (kind == "eval_context" or (kind == "answers" and name in fields))
