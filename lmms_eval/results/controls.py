"""Comparison of tasks with their controls: paired gaps, rotations, and the chance level (``docs/controls.md``)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from loguru import logger
from msgspec import Struct, field

from lmms_eval import stats
from lmms_eval.api.task import Group, Task
from lmms_eval.config.rules import control_name
from lmms_eval.engine.aggregate import MetricResult, TaskResult
from lmms_eval.engine.groups import leaves_of
from lmms_eval.engine.store import RunStore
from lmms_eval.models.task_access import offered_options, target_of
from lmms_eval.results.baseline import BaselineRow
from lmms_eval.tasks.yaml.choices import ROTATION
from lmms_eval.utils.numbers import ScoreRange
from lmms_eval.utils.records import to_dict


class Chance(Struct, frozen=True):
    """Shares of right documents that need no model."""

    uniform: float | None
    """Expected share of random choices: the mean of 1 / number of choices, with 0 for documents without choices;
    ``None`` if no document has choices."""
    majority: float | None
    """Share of the most common reference answer, given to every document; ``None`` without reference answers."""


def chance_of(task: Task, doc_ids: Sequence[int]) -> Chance:
    """Compute the chance level over documents of a task whose data are open."""
    shares: list[float] = []
    answers: Counter[str] = Counter()
    for doc_id in doc_ids:
        try:
            count = _choices(task, doc_id)
            answer = target_of(task, doc_id)
        except Exception as error:  # noqa: BLE001 - a task's own functions may raise anything
            logger.debug("{}: no chance level of document {}: {!r}", task.name, doc_id, error)
            continue
        shares.append(1 / count if count > 1 else 0.0)
        answers[_text(answer)] += 1
    if not shares:
        return Chance(None, None)
    most = answers.most_common(1)[0][1] / len(shares)
    return Chance(math.fsum(shares) / len(shares) if any(shares) else None, most)


def _choices(task: Task, doc_id: int) -> int:
    """Return the number of a document's choices, from the task or from the options in its prompt; 0 without choices."""
    choice_texts = getattr(task, "choice_texts", None)
    if callable(choice_texts) and (found := choice_texts(doc_id)):
        return len(found)
    if task.output_type in ("loglikelihood", "loglikelihood_rolling"):
        return 0
    return len(offered_options(task, doc_id, task.exchange(doc_id, 0).open()[0].context))


def _text(answer: Any) -> str:
    if isinstance(answer, list | tuple):
        return _text(answer[0]) if answer else ""
    return str(answer).strip()


_STRATUM = "task_name"
"""Field of a document's value that divides the documents for a macro mean."""


class Gap(Struct, frozen=True):
    """The numbers of a task and of its control, in units of the metric."""

    score: float
    """The control's score, over the documents that both have."""
    plain: float
    """The task's score, over the same documents."""
    gap: float
    """``plain`` minus ``score``: the loss in the control."""
    interval: stats.Interval | stats.NoInterval
    """95 % interval of the gap."""
    p: float | None
    """Two-sided p-value."""
    n: int
    """Number of documents."""

    @property
    def is_clear(self) -> bool:
        """Whether the interval lies on one side of 0."""
        found = self.interval
        return isinstance(found, stats.Interval) and (found.low > 0 or found.high < 0)

    def as_dict(self) -> dict[str, Any]:
        return {**to_dict(self), "interval": _ends(self.interval)}


class Rotated(Struct, frozen=True):
    """A metric over the rotations of each document's choices, including the task's own order."""

    mean: float
    """Mean over documents of the mean over rotations, in units of the metric."""
    mean_interval: stats.Interval | stats.NoInterval
    all_right: float
    """Share of documents that are right in all of their rotations, in units of the metric."""
    all_right_interval: stats.Interval | stats.NoInterval
    n: int
    """Documents."""
    orders: int
    """Largest number of rotations of a document."""


class TaskControls(Struct, frozen=True):
    """Findings from the controls of one task."""

    chance: Chance
    gaps: Mapping[str, Mapping[str, Gap]] = field(default_factory=dict)
    """By control and ``METRIC,FILTER``."""
    rotations: Mapping[str, Rotated] = field(default_factory=dict)
    """By ``METRIC,FILTER``."""
    scales: Mapping[str, float] = field(default_factory=dict)
    """Score of a right document, by ``METRIC,FILTER``, for metrics that count right documents."""

    def as_dict(self) -> dict[str, Any]:
        """Return the task's entry in the results document."""
        made: dict[str, Any] = {"chance": to_dict(self.chance)}
        for control, rows in self.gaps.items():
            made[control] = {row: gap.as_dict() for row, gap in rows.items()}
        if self.rotations:
            made["rotations"] = {
                row: {
                    **to_dict(found),
                    "mean_interval": _ends(found.mean_interval),
                    "all_right_interval": _ends(found.all_right_interval),
                }
                for row, found in self.rotations.items()
            }
        return made


def _ends(found: stats.Interval | stats.NoInterval) -> dict[str, Any]:
    if isinstance(found, stats.Interval):
        return {**to_dict(found), "estimand": found.estimand}
    return {"low": None, "high": None, "reason": found.reason}


class Controls(Struct, frozen=True):
    """Findings from the controls of a run."""

    tasks: Mapping[str, TaskControls] = field(default_factory=dict)
    groups: Mapping[str, Mapping[str, Gap]] = field(default_factory=dict)
    """By group and control: the mean gap over the group's tasks, by the first metric of each task. Groups whose tasks
    have scores of different ranges are left out."""

    def as_dict(self) -> dict[str, Any]:
        """Return the part ``controls`` of the results document."""
        found = {name: one.as_dict() for name, one in self.tasks.items()}
        return found | {
            name: {control: gap.as_dict() for control, gap in gaps.items()} for name, gaps in self.groups.items()
        }


NO_CONTROLS: Controls = Controls()


def control_findings(results: Sequence[TaskResult], groups: Sequence[Group], store: RunStore) -> Controls:
    """Compare each task of a run, and each group of tasks, with its controls by document."""
    below: dict[str, list[TaskResult]] = {}
    for result in results:
        if result.task.control_of and result.task.variant is None and not result.task.asks_again:
            below.setdefault(result.task.control_of, []).append(result)
    if not below:
        return NO_CONTROLS
    by_name = {result.task.name: result for result in results}
    columns = {
        name: document_scores(by_name[name], store) for of in below for name in (of, *(c.task.name for c in below[of]))
    }
    tasks = {name: _of_task(by_name[name], [one.task.name for one in below[name]], columns) for name in below}
    groups_by_name = {group.name: group for group in groups}
    found = {group.name: _of_group(sorted(set(leaves_of(group, groups_by_name))), below, columns) for group in groups}
    return Controls(tasks, {name: gaps for name, gaps in found.items() if gaps})


def _of_task(
    plain: TaskResult, controls: Sequence[str], columns: Mapping[str, Mapping[BaselineRow, DocumentScores]]
) -> TaskControls:
    own = columns[plain.task.name]
    gaps: dict[str, dict[str, Gap]] = {}
    turned = []
    for full_name in controls:
        name, found = full_name.removeprefix(control_name(plain.task.name, "")), columns[full_name]
        if name.startswith(ROTATION):
            turned.append(found)
            continue
        both = {str(row): _gap([(own[row], found[row])]) for row in own if row in found}
        gaps[name] = {row: gap for row, gap in both.items() if gap is not None}
    rotations = {str(row): _rotated(row, scores, turned) for row, scores in own.items()} if turned else {}
    chance = chance_of(plain.task, plain.plan.doc_ids)
    scales = {str(row): scores.right for row, scores in own.items() if scores.right}
    return TaskControls(chance, gaps, {row: found for row, found in rotations.items() if found is not None}, scales)


def _of_group(
    leaves: Sequence[str],
    below: Mapping[str, Sequence[TaskResult]],
    columns: Mapping[str, Mapping[BaselineRow, DocumentScores]],
) -> dict[str, Gap]:
    """Return a group's gaps by control: the mean gap over its tasks, if at least two have comparable scores."""
    pairs: dict[str, list[tuple[DocumentScores, DocumentScores]]] = {}
    for leaf in leaves:
        for result in below.get(leaf, ()):
            row = next(iter(columns[leaf]), None)
            control = result.task.name.removeprefix(control_name(leaf, ""))
            if row is None:
                break
            if row in columns[result.task.name] and not control.startswith(ROTATION):
                pairs.setdefault(control, []).append((columns[leaf][row], columns[result.task.name][row]))
    alike = {
        control: found
        for control, found in pairs.items()
        if len(found) > 1 and len({plain.metric.certainty.score_range for plain, _ in found}) == 1
    }
    return {control: gap for control, found in alike.items() if (gap := _gap(found)) is not None}


class DocumentScores(Struct, frozen=True):
    """A metric's numbers by document; their mean is the metric's number."""

    metric: MetricResult
    by_document: Mapping[int, float]
    clusters: Mapping[int, str | None]
    strata: Mapping[int, str]
    """The documents' strata, if the metric's number is the mean of the strata's means; else empty."""

    @property
    def within(self) -> ScoreRange:
        """Range of a document's number."""
        found = self.metric.certainty.score_range
        if found == stats.ANY_NUMBER or self.strata:
            return stats.ANY_NUMBER
        return found

    @property
    def right(self) -> float:
        """Number of a right document, if the metric counts right documents; else 0."""
        scale, found = self.metric.scale or 1.0, self.metric.certainty.score_range
        return scale if self.strata or found == ScoreRange(0.0, scale) else 0.0

    def named(self, documents: Sequence[int]) -> list[str | None] | None:
        """Return the clusters of documents; ``None`` if no document has a cluster."""
        names = [self.clusters.get(doc_id) for doc_id in documents]
        return names if any(name is not None for name in names) else None


def document_scores(result: TaskResult, store: RunStore) -> dict[BaselineRow, DocumentScores]:
    """Return the scores of the task's metrics that are means over documents or over strata of documents."""
    numbers = (one for one in result.metrics if isinstance(one.value, int | float) and not isinstance(one.value, bool))
    metrics = {BaselineRow(one.metric, one.filter): one for one in numbers if math.isfinite(one.value)}
    values: dict[BaselineRow, dict[int, Any]] = {row: {} for row in metrics}
    for record in store.scores(result.task.name, result.plan.doc_ids):
        for score in record.get("scores", ()):
            for name, value in score["metrics"].items():
                row = BaselineRow(name, score["filter"])
                if row in values and stats.item_number(value, result.task.score_key) is not None:
                    values[row][record["doc_id"]] = value
    found = {row: _scores(result, metric, values[row]) for row, metric in metrics.items()}
    return {row: scores for row, scores in found.items() if scores is not None}


def _scores(result: TaskResult, metric: MetricResult, values: Mapping[int, Any]) -> DocumentScores | None:
    scale = metric.scale
    numbers = {doc_id: stats.item_number(value, result.task.score_key) or 0.0 for doc_id, value in values.items()}
    names = result.clusters.of(list(numbers))
    clusters: dict[int, str | None] = {} if names is None else dict(zip(numbers, names, strict=True))
    if scale > 0:
        scaled = {doc_id: scale * number for doc_id, number in numbers.items()}
        return DocumentScores(metric, scaled, clusters, {})
    strata = {
        doc_id: str(value[_STRATUM])
        for doc_id, value in values.items()
        if isinstance(value, Mapping) and _STRATUM in value
    }
    if not strata or len(strata) < len(numbers):
        return None
    weights = document_weights(list(strata), strata)
    mean = math.fsum(weights[doc_id] * number for doc_id, number in numbers.items()) / len(numbers)
    is_macro = math.isclose(mean, float(metric.value), rel_tol=1e-9, abs_tol=1e-12)
    return DocumentScores(metric, numbers, clusters, strata) if is_macro else None


def document_weights(documents: Sequence[int], strata: Mapping[int, str]) -> dict[int, float]:
    """Return weights, 1 on average, that turn the mean over documents into the mean over strata."""
    if not strata:
        return dict.fromkeys(documents, 1.0)
    sizes = Counter(strata[doc_id] for doc_id in documents)
    return {doc_id: len(documents) / (len(sizes) * sizes[strata[doc_id]]) for doc_id in documents}


def _gap(tasks: Sequence[tuple[DocumentScores, DocumentScores]]) -> Gap | None:
    """Return the mean over tasks of the gap, over the documents that a task and its control both have.

    Documents are weighted so that every task counts equally, and every stratum counts equally within its task.
    """
    shared = [sorted(set(plain.by_document) & set(control.by_document)) for plain, control in tasks]
    n = sum(map(len, shared))
    if not all(shared):
        return None
    first: list[float] = []
    second: list[float] = []
    clusters: list[str | None] = []
    for number, ((plain, control), documents) in enumerate(zip(tasks, shared, strict=True)):
        of_task, weights = n / (len(tasks) * len(documents)), document_weights(documents, plain.strata)
        first += [of_task * weights[doc_id] * plain.by_document[doc_id] for doc_id in documents]
        second += [of_task * weights[doc_id] * control.by_document[doc_id] for doc_id in documents]
        names = plain.named(documents)
        if names is None and len(tasks) > 1:  # every document of such a task is a cluster
            names = [str(doc_id) for doc_id in documents]
        clusters += [] if names is None else [None if name is None else f"{number} {name}" for name in names]
    has_clusters = any(plain.named(documents) is not None for (plain, _), documents in zip(tasks, shared, strict=True))
    within = tasks[0][0].within if len(tasks) == 1 else stats.ANY_NUMBER
    from lmms_eval.stats.differences import PairOptions, compare_pairs

    found = compare_pairs(first, second, clusters if has_clusters else None, PairOptions(within=within))
    return Gap(math.fsum(second) / n, math.fsum(first) / n, found.value, found.interval, found.p, n)


def _rotated(
    row: BaselineRow, plain: DocumentScores, turned: Iterable[Mapping[BaselineRow, DocumentScores]]
) -> Rotated | None:
    """Return the metric over rotations; ``None`` if the metric does not count right documents."""
    if plain.strata or not plain.right:
        return None
    further = [found[row].by_document for found in turned if row in found]
    asked = {doc_id: [score, *(one[doc_id] for one in further if doc_id in one)] for doc_id, score in
             plain.by_document.items()}  # fmt: skip
    if not asked:
        return None
    right = plain.right
    means = [math.fsum(scores) / len(scores) for scores in asked.values()]
    shares = [right * float(min(scores) >= right) for scores in asked.values()]
    names = plain.named(list(asked))
    return Rotated(
        math.fsum(means) / len(means),
        _interval(means, names, plain.within),
        math.fsum(shares) / len(shares),
        _interval(shares, names, ScoreRange(0.0, right)),
        len(asked),
        max(map(len, asked.values())),
    )


def _interval(
    scores: Sequence[float], clusters: Sequence[str | None] | None, within: ScoreRange
) -> stats.Interval | stats.NoInterval:
    """Return the interval of a mean by the project's rule."""
    if clusters is None:
        spread = stats.MeanSpread.of_scores(scores, within)
    else:
        spread = stats.MeanSpread.clustered(scores, clusters, within)
    return stats.score_interval(math.fsum(scores) / len(scores), spread, within)
