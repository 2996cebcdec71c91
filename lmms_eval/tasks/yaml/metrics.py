"""The metrics of a task from ``metric_list``, and the default scoring without ``process_results``."""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.api.registry import AGGREGATIONS as ADDED_AGGREGATIONS
from lmms_eval.api.registry import METRICS as ADDED_METRICS
from lmms_eval.api.task import MetricDefinition
from lmms_eval.errors import DataError, TaskError, UnknownNameError, UsageError
from lmms_eval.metrics.table import AGGREGATIONS, METRICS
from lmms_eval.tasks.data import Documents
from lmms_eval.tasks.yaml.config import GENERATING, TaskConfig
from lmms_eval.tasks.yaml.functions import module_source, named
from lmms_eval.tasks.yaml.settings import arguments_of, nearest, wrong_value
from lmms_eval.utils.answer_reading import NOTING
from lmms_eval.utils.numbers import ScoreRange

if TYPE_CHECKING:
    from lmms_eval.stats.repeats import Reducer


def stated_strata(entry: Mapping[str, Any], registered: str | None, where: str) -> tuple[str, float]:
    """Read the key ``strata`` of an entry of ``metric_list``: a column, or ``{column: ..., scale: ...}``.

    The scale is a factor of the mean: 100 gives a percentage for documents that count 0 or 1. Without the key, the
    column is empty and the scale 0. Raises ``TaskError`` if it is neither, or the aggregation is a registered one,
    which does not support strata.
    """
    stated = entry.get("strata")
    if stated is None:
        return "", 0.0
    said = f"{where}: key 'metric_list', strata of metric {entry['metric']}"
    if registered is not None:
        raise TaskError(
            f"{said}: aggregation {registered!r} is no mean over strata; give a function that takes the mean over the "
            "strata of their documents' means"
        )
    given = {"column": stated} if isinstance(stated, str) else stated
    if isinstance(given, Mapping) and {*given} <= {"column", "scale"}:
        column, scale = given.get("column"), given.get("scale", 1.0)
        is_scale = isinstance(scale, int | float) and not isinstance(scale, bool) and 0 < scale < math.inf
        if column and isinstance(column, str) and is_scale:
            return column, float(scale)
    raise TaskError(f"{said}: give the name of a column, or {{column: NAME, scale: NUMBER}}, not {stated!r}")


def common_column(columns: Sequence[str], where: str) -> str:
    """Return the column of strata that the metrics of a task share; empty if no metric names one.

    Raises ``TaskError`` if they name several columns; documents are ordered by one column.
    """
    named = sorted({*columns} - {""})
    if len(named) > 1:
        raise TaskError(f"{where}: key 'metric_list': strata by {' and '.join(named)}; give one column for all metrics")
    return named[0] if named else ""


def strata_of(documents: Documents, column: str, doc_ids: Sequence[int], where: str) -> list[str] | None:
    """Return the stratum of each document; ``None`` without a column.

    Raises ``DataError`` if the data has no such column of text.
    """
    if not column:
        return None
    if column not in documents.text_columns:
        known = ", ".join(documents.text_columns)
        raise DataError(f"{where}: key 'metric_list': strata by {column!r}: {documents.source.where} has only {known}")
    return [str(name) for name in documents.source.cells(column, doc_ids).to_pylist()]


log = logging.getLogger(__name__)
BYPASS = "bypass"
DEFAULTS = {"multiple_choice": ("acc", "acc_norm"), "loglikelihood": ("perplexity", "acc")}
"""Default metrics by output type; ``exact_match`` for generating tasks."""
_CALLED_WITH = ("references", "predictions", "item")
"""Parameters of a metric's function other than its arguments."""
_OWN_KEYS = frozenset({"metric", "aggregation", "higher_is_better", "range", "strata"})
_ALL_TARGETS = frozenset({"anls", "bleu", "chrf", "ter", "wer"})
"""Metrics that compare with all reference answers at once."""


class TaskMetric(Struct, frozen=True):
    """A metric of a task with the arguments of its function."""

    definition: MetricDefinition
    arguments: Mapping[str, Any]
    strata: str = ""
    """Column of the strata, if the value is a mean over strata."""

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def is_ours(self) -> bool:
        """Whether its function comes with this package."""
        return self.name not in ADDED_METRICS


def task_metrics(config: TaskConfig, predict_only: bool, where: str) -> list[TaskMetric]:
    """Return the metrics of a task, in order.

    Raises ``TaskError`` if an entry has no name, or its aggregation is neither registered nor a function.
    """
    if predict_only:
        return [_metric({"metric": BYPASS}, config, where)]
    entries = config.metric_list
    if entries is None:
        entries = [{"metric": name} for name in DEFAULTS.get(config.output_type, ("exact_match",))]
    return [_metric(entry, config, where) for entry in entries]


def reduced_metrics(
    metrics: Sequence[TaskMetric], given: Sequence[Reducer], config: TaskConfig
) -> Iterator[MetricDefinition]:
    """Yield a metric ``METRIC_REDUCER`` for each metric and reducer: the mean over documents of the reduced scores."""

    def mean_with_clusters(items: Sequence[Mapping[str, Any]]) -> float:
        return math.fsum(item[config.score_key] for item in items) / len(items)

    name = None if config.cluster_key else "mean"  # the values name their clusters
    function = AGGREGATIONS[name].function() if name else mean_with_clusters
    for metric in metrics:
        own = metric.definition
        within = own.score_range if own.aggregation_name == "mean" else None
        for reducer in given:
            yield MetricDefinition(
                f"{own.name}_{reducer.name}", function, name, own.higher_is_better, within, reduces=own.name
            )


def stated_reducers(texts: Iterable[str]) -> tuple[Reducer, ...]:
    """Read the reducers of ``--reduce``; most runs have none. Raises ``UsageError`` if a text is not a reducer."""
    given = tuple(texts)
    if not given:
        return ()
    from lmms_eval.stats.repeats import reducers

    return reducers(given)


def check_reducers(given: Sequence[Reducer], repeats: int, config: TaskConfig, where: str) -> None:
    """Raise ``UsageError`` if a task has too few repeats, or its scoring extracts no answer that could have a vote."""
    for reducer in given:
        if reducer.k > repeats or repeats == 1:
            raise UsageError(
                f"{where}: --reduce {reducer.name}: each document has {repeats} "
                f"{'answer' if repeats == 1 else 'answers'}; give --repeats {max(reducer.k, 2)} or more"
            )
        function = config.process_results
        is_read = function is None or any(name in module_source(function) for name in NOTING)
        if reducer.needs_answers and not (config.output_type in GENERATING and (config.filter_list or is_read)):
            raise UsageError(
                f"{where}: --reduce {reducer.name}: the scoring of this task does not extract an answer that could "
                "have a vote; leave it out, or give the task a filter_list that extracts one"
            )


def _metric(entry: Mapping[str, Any], config: TaskConfig, where: str) -> TaskMetric:
    name = entry.get("metric")
    if callable(name):
        raise TaskError(f"{where}: key 'metric_list': metric must be a name, not a function; use process_results")
    if not isinstance(name, str) or not name:
        raise TaskError(f"{where}: key 'metric_list': an entry without 'metric': {dict(entry)!r}")
    known: Any = ADDED_METRICS.get(name) if name in ADDED_METRICS else METRICS.get(name)
    stated = entry.get("aggregation")
    if stated is None:
        stated = None if known is None else known.aggregation
        if stated is None:
            stated = "mean"
            log.warning("%s: metric %s has no aggregation and is not registered: %s is taken", where, name, stated)
    direction = entry.get("higher_is_better")
    if direction is not None and not isinstance(direction, bool):
        raise TaskError(f"{where}: key 'metric_list': higher_is_better must be true or false, not {direction!r}")
    if direction is None:
        direction = True if known is None or known.higher_is_better is None else known.higher_is_better
    arguments = {key: value for key, value in entry.items() if key not in _OWN_KEYS}
    _check_arguments(name, arguments, config, where)
    function, registered = aggregation(stated, where)
    own = function if registered else named(function, f"the aggregation of metric {name!r}")
    column, scale = stated_strata(entry, registered, where)
    definition = MetricDefinition(name, own, registered, bool(direction), _range(entry, registered, where), scale)
    return TaskMetric(definition, arguments, column)


def _check_arguments(name: str, given: Mapping[str, Any], config: TaskConfig, where: str) -> None:
    """Refuse unknown metrics, and arguments that a metric's function does not take.

    With ``process_results`` the metric's function is not called, so only a misspelt key of the entry is refused.
    """
    function = None if config.process_results or name == BYPASS else metric_function(name, config.output_type)
    if function is None and not config.process_results and name != BYPASS:
        known = sorted({*METRICS, *ADDED_METRICS.names()})
        hint = f"for output_type {config.output_type} ({where}); process_results may return it"
        raise UnknownNameError("metric", name, known, hint)
    taken = None if function is None else arguments_of(function, _CALLED_WITH)
    for key in given:
        near = nearest(key, [*(taken or ()), *_OWN_KEYS])
        if key not in (taken or ()) and (near or taken is not None):
            hint = f"did you mean {near!r}?" if near else f"it takes: {', '.join(taken or ()) or 'none'}"
            raise TaskError(f"{where}: key 'metric_list': metric {name!r} has no argument {key!r}; {hint}")
    # Only our own functions state types that YAML can express.
    if function is None or not given or name in ADDED_METRICS:
        return
    if wrong := wrong_value(function, given):
        raise TaskError(f"{where}: key 'metric_list': metric {name!r}: {wrong}")
    if config.output_type in GENERATING:
        try:
            function(references=["a"], predictions=["a"], **given)
        except UsageError as error:  # such as an invalid regular expression
            raise TaskError(f"{where}: key 'metric_list': {error}") from error


def _range(entry: Mapping[str, Any], registered: str | None, where: str) -> ScoreRange | None:
    """Return the range of the entry, else that of the registered aggregation or of the averaged metric."""
    stated, name = entry.get("range"), entry["metric"]
    if stated is not None:
        return _stated_range(stated, f"{where}: key 'metric_list', range of metric {name}")
    if registered == "mean":
        known = ADDED_METRICS.get(name) if name in ADDED_METRICS else METRICS.get(name)
        found: ScoreRange | None = None if known is None else known.score_range
        return found
    is_built_in = registered in AGGREGATIONS and registered not in ADDED_AGGREGATIONS
    return AGGREGATIONS[str(registered)].score_range if is_built_in else None


def _stated_range(stated: Any, where: str) -> ScoreRange:
    ends = stated if isinstance(stated, list | tuple) else ()
    are_numbers = all(end is None or (isinstance(end, int | float) and not isinstance(end, bool)) for end in ends)
    if len(ends) == 2 and are_numbers:
        low, high = ends
        found = ScoreRange(-math.inf if low is None else float(low), math.inf if high is None else float(high))
        if found.low < found.high:
            return found
    raise TaskError(f"{where}: give [least, greatest] as numbers, null for an end that is not there, not {stated!r}")


def aggregation(stated: Any, where: str) -> tuple[Callable[..., Any], str | None]:
    """Return the function of an aggregation, and its name if it is registered.

    Raises ``TaskError`` if it is neither a registered name nor a function.
    """
    if callable(stated):
        return stated, None
    name = str(stated)
    if name in ADDED_AGGREGATIONS:
        return ADDED_AGGREGATIONS.get(name), name
    if name in AGGREGATIONS:
        return AGGREGATIONS[name].function(), name
    known = sorted({*AGGREGATIONS, *ADDED_AGGREGATIONS.names()})
    hint = f"({where}: key 'metric_list'); known: {', '.join(known)}, or `!function module.name` of your own"
    raise UnknownNameError("aggregation", name, known, hint)


def metric_function(name: str, output_type: str) -> Callable[..., Any] | None:
    """Return the function that scores one document; ``None`` if the output type has no such function."""
    if name in ADDED_METRICS:
        added = ADDED_METRICS.get(name)
        function: Callable[..., Any] = added.function
        return function
    return _built_in(name, "generate_until" if output_type in GENERATING else output_type)


@functools.cache
def _built_in(name: str, output_type: str) -> Callable[..., Any] | None:
    return METRICS[name].function(output_type) if name in METRICS else None


def score_text(metric: TaskMetric, output_type: str, targets: Sequence[Any], answer: Any) -> Any:
    """Score a generated answer against one or several reference answers.

    With several, the score is 1.0 if any of them makes the metric truthy. ``anls`` and the corpus metrics take them
    all at once.
    """
    function = metric_function(metric.name, output_type)
    if metric.name == BYPASS or function is None:
        return [[list(targets) if len(targets) != 1 else targets[0]], [answer]]
    built_in = metric.name not in ADDED_METRICS
    golds = [str(target) for target in targets] if built_in else list(targets)
    if (built_in and metric.name in _ALL_TARGETS) or len(golds) == 1:
        return _call(function, metric, golds, answer)
    return float(any(bool(_call(function, metric, [gold], answer)) for gold in golds))


def _call(function: Callable[..., Any], metric: TaskMetric, golds: Sequence[Any], answer: Any) -> Any:
    value = function(references=list(golds), predictions=[answer], **metric.arguments)
    # Nearly always a dictionary; checking for Mapping takes ten times as long.
    return value[metric.name] if isinstance(value, (dict, Mapping)) and metric.name in value else value
