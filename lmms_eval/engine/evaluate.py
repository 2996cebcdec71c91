"""A run from its tasks to its numbers: plan -> stream -> journal -> score -> aggregate."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from lmms_eval.api.model import Model
from lmms_eval.api.task import Selection
from lmms_eval.engine.aggregate import AggregateOptions, TaskResult, aggregate_task
from lmms_eval.engine.asking import Asking, AskReport
from lmms_eval.engine.conversations import Conversations, Unit
from lmms_eval.engine.groups import GroupResult, aggregate_groups
from lmms_eval.engine.plan import TaskPlan, shared_units, units
from lmms_eval.engine.progress import Progress
from lmms_eval.engine.response_cache import ResponseCache
from lmms_eval.engine.run_folder import RunState
from lmms_eval.engine.scoring import Scorer
from lmms_eval.engine.share import Share
from lmms_eval.engine.store import RunStore
from lmms_eval.engine.stream import StreamLimits


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What the engine needs to know beside the tasks and the model."""

    stream: StreamLimits = field(default_factory=StreamLimits)
    aggregate: AggregateOptions = field(default_factory=AggregateOptions)
    grace_s: float = 20.0
    score_workers: int | None = None
    show_progress: bool = False
    cache: ResponseCache | None = None
    """Responses of earlier runs; who opened it closes it."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """Everything that a run has found out."""

    tasks: tuple[TaskResult, ...]
    groups: tuple[GroupResult, ...]
    asking: AskReport
    seconds: dict[str, float]
    """Wall time by stage: ``ask`` (scoring runs within it), ``score`` (what was left of it), ``gather`` (waiting for
    other processes), ``aggregate``."""
    resumed: int
    """Responses that the journal already held."""
    prompt_fingerprint: str
    peak_prefetch_bytes: int

    @property
    def broken(self) -> tuple[str, ...]:
        """What raised while aggregating."""
        metrics = [metric for task in self.tasks for metric in task.metrics]
        metrics += [metric for group in self.groups for metric in group.metrics]
        return tuple(metric.withheld_reason for metric in metrics if metric.broken)

    @property
    def is_finished(self) -> bool:
        """Nothing failed and nothing is missing."""
        return self.asking.interrupted is None and not any(task.outcome.failed for task in self.tasks)

    @property
    def state(self) -> RunState:
        if self.asking.interrupted is not None:
            return "interrupted"
        is_withheld = self.broken or any(task.outcome.withheld for task in self.tasks)
        return "withheld" if is_withheld else "complete"


def evaluate(
    plans: Sequence[TaskPlan],
    selection: Selection,
    model: Model,
    store: RunStore,
    options: EngineOptions,
    share: Share | None = None,
) -> RunResult | None:
    """Ask what is not answered, score what is not scored, aggregate.

    ``share`` is this process's part of a launch of several; ``None`` is returned where another one aggregates.

    Raises:
        JournalError: the journal could not be written; what it holds is kept.
        UsageError: a task's data or a model turned out unusable.
        TeamError: another process of the launch has failed.
    """
    seconds: dict[str, float] = {}
    asking = _ask_and_score(_Work(plans, model, store, options, share), seconds)
    report = asking.report
    if share is not None:
        with _stage(seconds, "gather"):
            if not share.gather(store, report):
                return None
    with _stage(seconds, "aggregate"):
        tasks = _aggregate(plans, store, options.aggregate, report)
        groups = aggregate_groups(selection.groups, {result.task.name: result for result in tasks})
    peak = asking.peak_bytes
    return RunResult(tasks, tuple(groups), report, seconds, store.resumed_responses, store.prompt_fingerprint(), peak)


@dataclass(frozen=True, slots=True)
class _Work:
    """What is asked, of whom, and where it is kept."""

    plans: Sequence[TaskPlan]
    model: Model
    store: RunStore
    options: EngineOptions
    share: Share | None

    def todo(self, done: dict[str, set[int]]) -> Iterator[Unit]:
        """Documents for this process."""
        if self.share is None:
            return units(self.plans, done)
        return shared_units(self.plans, done, self.share.team.next_block)


def _ask_and_score(work: _Work, seconds: dict[str, float]) -> Asking:
    """The run and score phases, which overlap; everything is in the journals afterwards."""
    store, options, share = work.store, work.options, work.share
    done = store.done() if share is None else share.done(store.done())
    finished = sum(len(done.get(plan.task.name, set()).intersection(plan.doc_ids)) for plan in work.plans)
    progress = Progress(sum(plan.requested for plan in work.plans), finished, options.show_progress)

    def keep(record: dict[str, Any]) -> None:
        store.add_score(record)
        progress.document(record)

    tasks = [plan.task for plan in work.plans]
    scorer = Scorer(tasks, keep, options.score_workers)
    conversations = Conversations(work.todo(done), store.response, scorer.submit)
    asking = Asking(work.model, store, conversations, progress, scorer.is_behind, options.cache)
    try:
        with _stage(seconds, "ask"):
            work.model.attach_tasks(tasks)
            if share is not None:
                share.team.watch(asking.stop)
            report = asking.run(options.stream, options.grace_s)
        with _stage(seconds, "score"):
            if not report.cut_short:  # what is not scored now is scored on the next start
                scorer.drain()
    finally:
        scorer.close()
        progress.close()
        store.sync()
    return asking


def _aggregate(
    plans: Sequence[TaskPlan], store: RunStore, options: AggregateOptions, report: AskReport
) -> tuple[TaskResult, ...]:
    not_asked = ""
    if report.interrupted is not None:
        not_asked = "the run was interrupted before this document was finished"
    elif report.give_up:
        not_asked = f"not asked: given up because {report.give_up}"
    chosen = AggregateOptions(
        options.error_budget, options.bootstrap_iters, options.arguments, report.interrupted is not None
    )
    return tuple(aggregate_task(plan, store, chosen, not_asked) for plan in plans)


@contextmanager
def _stage(seconds: dict[str, float], name: str) -> Iterator[None]:
    start = time.monotonic()
    try:
        yield
    finally:
        seconds[name] = time.monotonic() - start
