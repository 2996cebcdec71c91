"""Parts of the results document about certainty: intervals, variance, samples, clusters, human scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, structs

from lmms_eval import stats
from lmms_eval.api.outcome import SubScore
from lmms_eval.engine.aggregate import MetricResult, TaskResult
from lmms_eval.engine.groups import GroupResult
from lmms_eval.engine.plan import Drawn
from lmms_eval.engine.uncertainty import Certainty
from lmms_eval.stats.agreement import HumanAgreement
from lmms_eval.stats.interval import BENCHMARK, Estimand
from lmms_eval.utils.records import to_dict


class Open(Struct, kw_only=True):
    """A type with further keys, which depend on the task."""


class StatedInterval(Open, kw_only=True):
    """A 95 % interval and what it is about."""

    low: float
    """Lower end."""
    high: float
    """Upper end."""
    method: str
    """``wilson``, ``t``, ``betting`` and the like."""
    estimand: Estimand | UnsetType = UNSET
    """The score over all documents of this list, or over documents like these; absent in older results."""


class MissingInterval(Open, kw_only=True):
    """The reason for a missing interval."""

    low: None
    """Always null."""
    high: None
    """Always null."""
    reason: str
    """Why the interval is missing, such as ``n = 1`` or ``no spread``."""


class PublishedEntry(Struct, kw_only=True):
    """A published number of the model, and the comparison with the number of this run."""

    model: str
    """The model, as the source writes it."""
    metric: str
    """``METRIC,FILTER`` of the run's number, or the published metric if the run does not have it."""
    published: str
    """The published number, as it is printed."""
    unit: str
    """Unit of the published number and of all numbers here: ``%``, ``points of 1000``, ``points of 2800``."""
    thinking: bool
    """Whether it is a number with thinking."""
    kind: str
    """``own`` (the model's authors), ``cited`` (others quote it) or ``third-party run``."""
    source: str
    """The text that states it."""
    note: str
    """What the source says about it."""
    verdict: Literal["agrees", "differs", "not comparable"]
    """``agrees`` if the interval of the difference contains 0."""
    shown: str
    """The verdict as the table shows it."""
    value: float | None
    """The run's number."""
    difference: float | None
    """The run's number less the published one."""
    low: float | None
    """Lower end of the difference's interval: the run's own, wider by the rounding of the published number."""
    high: float | None
    """Upper end."""
    reason: str
    """Why the two are not comparable."""


class ReadingEntry(Struct, kw_only=True):
    """A metric whose answers are read as a recipe states."""

    recipe: str
    """Name and variant of the recipe."""
    rule: str
    """Name of the rule."""
    n: int
    """Documents."""
    by_judge: int
    """Documents whose answers a judge read."""
    judge: str
    """The source's judge; empty if the recipe states none."""


class SourceError(Open, kw_only=True):
    """Error and interval of a score with respect to one source of variance."""

    stderr: float | None
    """Standard error; null if it is not known."""
    low: float | None
    """Lower end of the 95 % interval."""
    high: float | None
    """Upper end."""
    method: str | UnsetType = UNSET
    """The method of the interval."""
    reason: str | UnsetType = UNSET
    """Why the interval is missing, such as ``no repeats``."""


class VarianceEntry(Open, kw_only=True):
    """Sources of the variance of a score, in its squared units, and the errors that follow."""

    n: int
    """Questions."""
    questions: float
    """Variance between the expected scores of questions."""
    answers: float | None
    """Variance between answers to one question; null without repeats. Without repeats of the judge it includes the
    variance of its verdicts."""
    judge: float | None
    """Variance between verdicts on one answer; null without repeats of the judge."""
    like_these: SourceError
    """For other questions like these, answered and judged anew; the interval is that of ``intervals``."""
    again: SourceError
    """If the same questions were asked again."""
    rejudged: SourceError
    """If the judge judged the same answers again."""


class ChangedEntry(Open, kw_only=True):
    """Documents whose second answer differs from the first one, with the exact 95 % interval of their share."""

    n: int
    """Documents with both."""
    changed: int
    """Documents that differ."""
    share: float
    """``changed`` / ``n``: the flip rate."""
    low: float
    """Lower end (Clopper and Pearson)."""
    high: float
    """Upper end."""


class ChangedScoresEntry(ChangedEntry, kw_only=True):
    """Documents whose second score differs, and the variance of answers that follows."""

    answers: float
    """Variance between two answers to one question, in squared units of a document's score."""
    answers_high: float | None
    """Upper end of its 95 % interval; null without a range with two ends."""


class NoiseFloorEntry(Struct, kw_only=True):
    """Documents of a task that were asked a second time with the same requests (``--repeat_share``)."""

    asked: int
    """Documents that were drawn."""
    answered: int
    """Documents among them with two answers that could be scored."""
    answers: ChangedEntry | None
    """Changes of the answers' texts and pictures."""
    scores: dict[str, ChangedScoresEntry]
    """Changes of scores, by ``METRIC,FILTER``, of the metrics whose values are numbers."""


AnyInterval = Annotated[
    Any, Meta(extra_json_schema={"anyOf": [{"$ref": "#/$defs/StatedInterval"}, {"$ref": "#/$defs/MissingInterval"}]})
]


class ClustersEntry(Struct, kw_only=True):
    """Clusters of a task's scored documents, such as the questions about one picture."""

    by: str
    """``column NAME``, ``first medium``, or ``none`` if documents are independent."""
    count: int
    """Number of clusters."""
    documents: int
    """Number of scored documents."""
    effective: float | UnsetType = UNSET
    """Number of clusters of one size that allow as much certainty at most, (Σ m)² / Σ m² for clusters of m documents;
    absent if documents are independent, and in older results."""
    media: Literal["sent_media", "input_media"] | UnsetType = UNSET
    """Key of the samples whose first medium is the cluster."""


class StratumEntry(Struct, kw_only=True):
    """A stratum of a sample."""

    asked: int
    """Documents that were drawn."""
    of: int
    """Documents of the stratum."""


class AnchorsEntry(Struct, kw_only=True):
    """A task's estimate with the scores of earlier runs (``--anchors``): mean anchor + mean of (score − anchor)."""

    metric: str
    """The metric that has anchors."""
    filter: str
    """Its filter pipeline."""
    runs: list[str]
    """The earlier runs, as the option names them."""
    digest: str
    """SHA-256 of the anchors."""
    fit: Literal["mean", "ridge", "logit"] | UnsetType = UNSET
    """How the earlier scores were combined; absent in older results."""
    cross_validated: float | UnsetType | None = UNSET
    """R² over earlier runs that were held out, each predicted from the others; null for a single run."""
    known: int
    """Documents with a score in an earlier run; the others have the mean."""
    of: int
    """Documents of the task."""
    asked: int
    """Documents that the estimate rests on."""
    estimate: float
    """Estimate of the score over all documents."""
    r_squared: float | None
    """Share of the scores' variance over what was asked that the anchors explain; negative if they add to it, null if
    all scores are equal."""
    method: str
    """Method of the interval of a task that stopped early; empty for a task that was asked as a whole."""


class SampledEntry(Struct, kw_only=True):
    """A task whose documents are a random sample of its list (``--sample``)."""

    design: Literal["simple", "stratified", "neyman", "by task"]
    """Drawn from all documents, from each stratum in proportion to its size, from strata of earlier scores, or, of a
    group, from each of its tasks."""
    seed: int
    """Seed of the draw."""
    asked: int
    """Documents that were drawn."""
    of: int
    """Documents of the list."""
    about: str
    """What ``intervals`` are about; those of the part ``intervals`` are about questions like these."""
    intervals: dict[str, AnyInterval]
    """95 % intervals for the values over the whole list, by ``METRIC,FILTER``."""
    runs: list[str] | UnsetType = UNSET
    """Earlier runs whose scores made the strata; with the design ``neyman``, as the following keys."""
    digest: str | UnsetType = UNSET
    """SHA-256 of the draw."""
    strata: dict[str, StratumEntry] | UnsetType = UNSET
    """The strata; the task's values weight each by its size."""


class PromptSpreadEntry(Struct, kw_only=True):
    """The spread of a score over prompts."""

    sd: float | None
    """Standard deviation of the prompts' scores; null for one prompt."""
    lowest: str
    """Name of the prompt with the lowest score."""
    highest: str
    """Name of the prompt with the highest score."""


class PromptMeanEntry(Struct, kw_only=True):
    """A metric over the prompts of a task, over the documents that have a number with all of them."""

    n: int
    """Documents."""
    missing: int
    """Documents without a number with one of the prompts."""
    missing_bounds: dict[str, float] | None
    """``low`` and ``high``: the ends of the widest interval whatever missing scores would be; null without missing
    ones, or if the range of the scores lacks an end."""
    scores: dict[str, dict[str, Any]]
    """By prompt: ``score`` with its 95 % interval, as ``low``, ``high`` and ``method``, or ``reason``."""
    mean: float
    """Mean over the prompts."""
    these: AnyInterval
    """95 % interval of the mean over these prompts, for questions like these."""
    like_these: AnyInterval
    """95 % interval of the mean over prompts like these, for questions like these."""
    spread: PromptSpreadEntry
    """Standard deviation, lowest and highest of the means of the prompts."""
    variance: dict[str, float]
    """Components of the variance of a score with a prompt: ``questions``, ``prompts``, and ``rest``, which is the
    interaction of both with the variance between answers."""


class PromptVariantsEntry(Struct, kw_only=True):
    """The variants of a task's prompt and the scores with them (``--prompt_variants``)."""

    variants: dict[str, dict[str, Any]]
    """By name: ``digest`` of the changes, and the ``changes`` by key of the file."""
    metrics: dict[str, PromptMeanEntry]
    """By ``METRIC,FILTER``."""


class HumanScoresEntry(Struct, kw_only=True):
    """A judged score, and its correction by human scores of some documents."""

    metric: str
    """``METRIC,FILTER``."""
    judge: float
    """Score by the judge, over all documents."""
    corrected: float
    """Estimate of the mean human score, in units of the metric."""
    stderr: float
    """Standard error for questions like these."""
    interval: dict[str, Any]
    """``low``, ``high``, ``method`` or ``reason``, and ``about``: 95 % interval for questions like these."""
    on_list: dict[str, Any]
    """The same for the mean over these documents: only the choice of the labelled ones varies."""
    weight: float
    """Weight of the judge's scores within the strata, from 0 to 1."""
    labels: int
    """Documents with a human score."""
    documents: int
    """Documents of the score."""
    drawn: Literal["planned", "taken as random"]
    """Whether the file states the probability of each document."""
    without_score: int
    """Drawn documents without a human score."""
    agreement: HumanAgreement
    """Judge against people, over the labelled documents."""


class NeedsMediaCell(Struct, kw_only=True):
    """Documents with one value of a column: what needs no media among them, and the score of the rest."""

    by: str
    """The column; empty for all documents."""
    value: str
    """Its value."""
    answered: int
    """Documents that the run answers."""
    explained: float | None
    """Share of these that a control answers too; null if there is no such document."""
    explained_interval: AnyInterval
    """95 % interval of that share."""
    rest: int
    """Documents that no control answers."""
    rest_score: float | None
    """The run's score over them, in units of the metric."""
    rest_interval: AnyInterval
    """95 % interval of that score."""


class NeedsMediaEntry(Struct, kw_only=True):
    """Comparison of a metric's documents with the controls that show no media (``--ablate``)."""

    controls: list[str]
    """Names of the controls."""
    cells: list[NeedsMediaCell]
    """All documents, then the values of each column."""
    documents: list[str]
    """Ids of the documents that the run and a control answer."""
    about_rest: str
    """What the score of the rest bounds, and if."""


class LengthSlope(Open, kw_only=True):
    """Slope of a judge's score over the length of the answer."""

    slope: float | None
    """Change of the score, in units of the metric, with each doubling of the answer's characters without thoughts."""
    correlation: float | None
    """Standardised slope."""
    low: float | None
    """Lower end of the 95 % interval of the slope; null if it is missing."""
    high: float | None
    """Upper end."""
    n: int
    """Documents."""
    method: str | UnsetType = UNSET
    """The method of the interval."""
    reason: str | UnsetType = UNSET
    """Why slope or interval are missing."""


class BiasShare(Open, kw_only=True):
    """A share of documents with its 95 % interval."""

    value: float
    """The share."""
    low: float | None
    """Lower end; null if there is no interval."""
    high: float | None
    """Upper end."""
    n: int
    """Documents."""
    method: str | UnsetType = UNSET
    """The method of the interval."""
    reason: str | UnsetType = UNSET
    """Why the interval is missing."""


class PositionEntry(Open, kw_only=True):
    """Preference of a judge that compares two answers for their position in the prompt."""

    orders: list[list[str]]
    """Names of the first and second answer, for each order that was asked."""
    documents: int
    """Documents with a comparison."""
    both_orders: int
    """Documents that were compared in both orders."""
    first: BiasShare
    """Share of comparisons that the first answer won, ties as one half: over documents with both orders, if any."""
    changed: BiasShare | UnsetType = UNSET
    """Share of the documents with both orders whose verdict changed with the order."""


class JudgeBiasEntry(Open, kw_only=True):
    """Effects of length and position of the answers on the scores of a judge."""

    metric: str
    """``METRIC,FILTER``."""
    length: LengthSlope
    """Over all judged documents."""
    length_given_human: LengthSlope | UnsetType = UNSET
    """The same at equal human scores, over the documents that people scored."""
    position: PositionEntry | UnsetType = UNSET
    """Present if the judge compares two answers."""


def plain(value: Any) -> Any:
    """Return a record as it is written, without the fields that are not set. Values of tasks stay as they are."""
    if isinstance(value, Struct):
        return {name: plain(item) for name, item in structs.asdict(value).items() if item is not UNSET}
    if isinstance(value, stats.Interval | SubScore):
        return to_dict(value)
    return {name: plain(item) for name, item in value.items()} if isinstance(value, dict) else value


def intervals_of(metrics: Sequence[MetricResult]) -> dict[str, Any]:
    return {
        f"{metric.metric},{metric.filter}": _interval(metric.certainty)
        for metric in metrics
        if metric.value is not None and (metric.interval is not None or metric.certainty.no_interval)
    }


def variances_of(tasks: Mapping[str, TaskResult]) -> dict[str, Any]:
    """Return the sources of the variance by task and ``METRIC,FILTER``."""
    found = {
        name: {
            f"{metric.metric},{metric.filter}": plain(
                VarianceEntry(
                    n=metric.variance.split.n,
                    questions=metric.variance.split.questions,
                    answers=metric.variance.split.answers,
                    judge=metric.variance.split.judge,
                    like_these=_source(metric.variance.like_these),
                    again=_source(metric.variance.again),
                    rejudged=_source(metric.variance.rejudged),
                )
            )
            for metric in result.metrics
            if metric.value is not None and metric.variance is not None
        }
        for name, result in tasks.items()
    }
    return {name: rows for name, rows in found.items() if rows}


def noise_of(tasks: Mapping[str, TaskResult]) -> dict[str, Any]:
    """Return, by task, what the documents show that were asked again."""
    return {
        name: plain(
            NoiseFloorEntry(
                asked=noise.asked,
                answered=noise.answered,
                answers=None if noise.answers is None else ChangedEntry(**to_dict(noise.answers)),
                scores={
                    row: ChangedScoresEntry(
                        **to_dict(found.scores), answers=found.answers, answers_high=found.answers_high
                    )
                    for row, found in noise.metrics.items()
                },
            )
        )
        for name, result in tasks.items()
        if (noise := result.noise) is not None
    }


def _source(certainty: Certainty) -> SourceError:
    """Return an error and interval as they are written."""
    error = None if certainty.spread is None or math.isnan(certainty.spread.error) else certainty.spread.error
    interval = certainty.interval
    if interval is None:
        return SourceError(stderr=error, low=None, high=None, reason=certainty.no_interval)
    return SourceError(stderr=error, low=interval.low, high=interval.high, method=interval.method)


def _interval(certainty: Certainty, estimand: Estimand | None = None) -> dict[str, Any]:
    found = certainty.interval
    if found is None:
        return to_dict(MissingInterval(low=None, high=None, reason=certainty.no_interval))
    return to_dict(
        StatedInterval(low=found.low, high=found.high, method=found.method, estimand=estimand or found.estimand)
    )


def _strata_of(sample: Drawn) -> dict[str, Any]:
    if not sample.runs:
        return {}
    strata = {name: StratumEntry(asked=len(sample.order[name]), of=size) for name, size in sample.sizes.items()}
    return {"runs": list(sample.runs), "digest": sample.digest, "strata": strata}


def _intervals_over_list(metrics: Sequence[MetricResult]) -> dict[str, Any]:
    return {
        f"{metric.metric},{metric.filter}": _interval(metric.over_list, BENCHMARK)
        for metric in metrics
        if metric.over_list is not None and metric.value is not None
    }


def _lists_of(group: GroupResult, tasks: Mapping[str, TaskResult]) -> SampledEntry | None:
    """Return the entry of a group with a random sample of a task; ``None`` without one."""
    leaves = [tasks[name] for name in group.leaves if name in tasks]
    drawn = [result.plan.sample for result in leaves if result.plan.sample is not None]
    intervals = _intervals_over_list(group.metrics)
    if not intervals or not drawn:
        return None
    of = sum(result.plan.requested if (one := result.plan.sample) is None else one.of for result in leaves)
    return SampledEntry(
        design="by task",
        seed=drawn[0].seed,
        asked=sum(result.plan.requested for result in leaves),
        of=of,
        about=f"the score over all {of:,} documents of the lists of its tasks",
        intervals=intervals,
    )


def sampled_of(tasks: Mapping[str, TaskResult], groups: Sequence[GroupResult] = ()) -> dict[str, Any]:
    """Return, by task, how its documents were drawn, with the intervals over the whole list; and those of groups."""
    lists = {group.group.name: _lists_of(group, tasks) for group in groups}
    return {name: plain(one) for name, one in lists.items() if one is not None} | {
        name: plain(
            SampledEntry(
                design=sample.design,
                seed=sample.seed,
                asked=result.plan.requested,
                of=sample.of,
                about=f"the score over all {sample.of:,} documents of this list",
                intervals=_intervals_over_list(result.metrics),
                **_strata_of(sample),
            )
        )
        for name, result in tasks.items()
        if (sample := result.plan.sample) is not None
    }
