"""The phases of a run: ask, judge and score, gather from other processes, aggregate."""

from __future__ import annotations

import gc
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from lmms_eval.api.model import Model
from lmms_eval.api.request import Request, Response
from lmms_eval.api.task import Selection, Task
from lmms_eval.engine.conversations import AnsweredDocument, Conversations, DocumentConversations, Unit
from lmms_eval.engine.drive import AskReport, Drive, Driven
from lmms_eval.engine.live import ProgressLine, Vitals
from lmms_eval.engine.outcomes import AggregateOptions
from lmms_eval.engine.plan import TaskPlan, dealt_units, ordered, shared_units, units
from lmms_eval.engine.records import NOTHING, RunSpending, answer_from_record, spending_from, without_cut_thought
from lmms_eval.engine.scoring import Scorer, Sink, WorkerOptions
from lmms_eval.engine.signals import EndNow, Interrupts
from lmms_eval.engine.stopping import DOCUMENTS, Budget, HopelessTasks, Limits, TaskEnds
from lmms_eval.engine.store import RunStore
from lmms_eval.engine.stream import Brake, StreamLimits
from lmms_eval.engine.team import Team
from lmms_eval.storage.run_folder import RunState
from lmms_eval.utils.records import to_dict

if TYPE_CHECKING:
    from lmms_eval.engine.aggregate import TaskResult
    from lmms_eval.engine.batch_check import BatchCheck
    from lmms_eval.engine.clusters import Clusters
    from lmms_eval.engine.groups import GroupResult
    from lmms_eval.engine.judging import JudgeSetup, Judging
    from lmms_eval.engine.lockstep import Lockstep
    from lmms_eval.engine.looks import Lead, Looks, Sampling
    from lmms_eval.engine.response_cache import ResponseCache
    from lmms_eval.engine.share import Share
    from lmms_eval.media.keeper import MediaKeeper


COLLECTS_AFTER = 5_000
"""New objects before a garbage collection, while a run asks. The objects of a request live until its answer, so with
Python's 700 each one is examined twice, which takes a twentieth of the time of a text. With more, pictures in cycles of
references would occupy memory for longer."""
SWITCH_INTERVAL_S = 0.002


class Asking:
    """One pass over all unanswered requests."""

    def __init__(
        self,
        driven: Driven,
        conversations: Conversations,
        limits: StreamLimits,
        is_behind: Callable[[], bool] = lambda: False,
        brake: Brake | None = None,
    ) -> None:
        """Prepare the asking.

        ``is_behind`` returns whether scoring would block; an event loop then waits before it passes responses on.
        ``brake`` holds new conversations back.
        """
        self._driven = driven
        self.drive = Drive(driven, conversations, limits, is_behind, brake)
        self._lockstep: Lockstep | None = None
        self._interrupts: Interrupts | None = None

    def run(self, grace_s: float, team: Team | None = None, tasks: Sequence[Task] = ()) -> AskReport:
        """Ask as ``Drive.run`` does, or until a signal arrives. It raises the same exceptions.

        Args:
            grace_s: seconds that open requests have after a signal.
            team: the processes that take blocks in lockstep with this one.
            tasks: the tasks of the run, for lockstep.
        """
        drive, report = self.drive, self.drive.report
        if team is not None:
            from lmms_eval.engine.lockstep import Lockstep

            self._lockstep = Lockstep(drive.stream, team, tasks, self._driven.model.prepare, self.stop)
        interrupts = self._interrupts = Interrupts(self.stop, grace_s)
        try:
            with interrupts, _tuned_interpreter():
                drive.run(self._lockstep)
        except EndNow:
            report.cut_short = True
        finally:
            drive.stream.close()
        if self._lockstep is not None:
            self._lockstep.leave()
        report.interrupted = interrupts.signal_number
        if report.interrupted is None and not report.give_up and not drive.is_stopped:
            drive.fail_open("the model ended without answering this request")
        if self._driven.cache is not None:
            report.cache = self._driven.cache.counts()
        return report

    def stop(self) -> None:
        """Hand out no more requests; open ones may finish."""
        self.drive.stop()

    def give_up(self, reason: str) -> None:
        """Hand out no more requests because the budget is spent; open ones may finish."""
        self.drive.give_up(reason, "budget")

    def others_failed(self) -> None:
        """Stop because another process failed; a collective that waits for it is interrupted after the grace time."""
        self.stop()
        if self._lockstep is not None and self._interrupts is not None:
            self._interrupts.end_soon()


@contextmanager
def _tuned_interpreter() -> Iterator[None]:
    """Let threads switch every 2 ms, and exclude all objects that exist now from garbage collection.

    With the default of 5 ms a scoring thread would delay 32 open connections; 0.5 ms takes a tenth more processor time
    per text. A garbage collection over all imported modules would take 50 ms. The command line postpones collections
    while it starts (``lmms_eval.__main__``); a run collects, so that its memory has a bound.
    """
    usual, collects_after = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.freeze()
    gc.set_threshold(min(collects_after[0], COLLECTS_AFTER), *collects_after[1:])
    try:
        yield
    finally:
        sys.setswitchinterval(usual)
        gc.set_threshold(*collects_after)
        gc.unfreeze()


SAMPLED_BLOCK = 8
"""Maximum number of documents that a process takes at a time from a random order."""


class EngineOptions(Struct, frozen=True):
    """Settings of the engine."""

    stream: StreamLimits = field(default_factory=StreamLimits)
    aggregate: AggregateOptions = field(default_factory=AggregateOptions)
    grace_s: float = 20.0
    score_workers: WorkerOptions | None = None
    """Worker processes for scoring; ``None``: score all tasks in this process."""
    show_progress: bool = False
    forgets_blank: bool = False
    """Ask a task again if every answer in its journal is blank or filtered."""
    retry_truncated: str = ""
    """Token limit (or ``max``) of the retry of a truncated answer; empty: no retry."""
    check_batch: int = 0
    """Number of requests that ``--check_batch`` asks again alone."""
    cache: ResponseCache | None = None
    """Responses of earlier runs. Its owner closes it."""
    limits: Limits | None = None
    """The budget of the run."""
    judge: JudgeSetup | None = None
    """Judge for the tasks that need one. The owner of its journal closes it."""
    sampling: Sampling | None = None
    """Random order of the documents with the rules for stopping early; ``None``: costliest documents first."""
    checks_continued: bool = False
    """Compare the prompts in the journals with those of now."""
    follow: Callable[[ProgressLine], None] | None = None
    """Called once with the progress, which then also counts by task, before anything is asked."""
    on_call: Callable[[Request, Response], None] | None = None
    """Called with every request to the model and its response."""
    keeper: MediaKeeper | None = None
    """Keeps media of the model's requests that have no file of their own. Its owner closes it."""


class RunScores(Struct, frozen=True):
    """The results of a run."""

    tasks: tuple[TaskResult, ...]
    groups: tuple[GroupResult, ...]
    asking: AskReport
    seconds: dict[str, float]
    """Wall time by stage: ``ask`` (with concurrent judging and scoring), ``judge`` and ``score`` (their remaining
    work), ``gather`` (waiting for other processes), ``check``, ``aggregate``."""
    resumed: int
    """Number of responses that the journal held at the start."""
    prompt_fingerprint: str
    batch_check: BatchCheck | None = None
    """Findings of ``--check_batch``, if it was given."""
    spent: RunSpending = field(default_factory=RunSpending)

    @property
    def broken(self) -> tuple[str, ...]:
        """Errors during aggregation."""
        metrics = [metric for task in self.tasks for metric in task.metrics]
        metrics += [metric for group in self.groups for metric in group.metrics]
        return tuple(metric.withheld_reason for metric in metrics if metric.broken)

    @property
    def served(self) -> Counter[str]:
        """Number of answers by the model name that the server reported."""
        return sum((task.tally.served for task in self.tasks), Counter())

    @property
    def is_finished(self) -> bool:
        """Whether no document failed and none is missing."""
        lacking = any(task.outcome.failed or task.outcome.not_asked for task in self.tasks)
        return self.asking.interrupted is None and not lacking

    @property
    def state(self) -> RunState:
        if self.asking.interrupted is not None:
            return "interrupted"
        outcomes = [task.outcome for task in self.tasks]
        is_withheld = self.broken or any(outcome.withheld or outcome.is_empty for outcome in outcomes)
        if is_withheld:
            return "withheld"
        return "stopped early" if any(task.early_stop for task in self.tasks) else "complete"


def evaluate(
    plans: Sequence[TaskPlan],
    selection: Selection,
    model: Model,
    store: RunStore,
    options: EngineOptions,
    share: Share | None = None,
) -> RunScores | None:
    """Ask what is not answered, score what is not scored, and aggregate.

    ``share`` is the part of this process in a launch of several. Returns ``None`` if another process aggregates.

    Raises:
        JournalError: the journal could not be written; its content is kept.
        UsageError: a task's data or the model cannot be used.
        TeamError: another process of the launch failed.
    """
    seconds: dict[str, float] = {}
    _forget(plans, store, options)
    model.attach_tasks([plan.task for plan in plans])
    model.attach_folder(store.folder / "model")
    if options.checks_continued and store.resumed_responses:
        from lmms_eval.engine.continued import check_continued

        check_continued([plan.task for plan in plans], model, store, share is None or share.team.is_first)
    done = store.done() if share is None else share.done(store.done())
    ends = TaskEnds()
    looks = None
    if options.sampling is not None:
        is_first = share is None or share.team.is_first
        from lmms_eval.engine.looks import Looks

        looks = Looks(plans, options.sampling, ends, decides=is_first, sends=not is_first)
    work = _Work(plans, model, store, options, share, ends, looks)
    progress = _progress(work, done)
    try:
        report = _ask_and_score(work, done, progress, seconds)
        if share is not None:
            with _stage(seconds, "gather"):
                if not share.gather(store, report):
                    return None
    finally:
        progress.close()
    check = None
    if options.check_batch:
        from lmms_eval.engine.batch_check import BatchCheck, check_batch

        with _stage(seconds, "check"):
            if report.interrupted is not None or report.give_up:
                check = BatchCheck(stopped="not made, since the run did not end")
            else:
                tested = [plan.task for plan in plans]
                check = check_batch(tested, model, store, options.check_batch, options.grace_s)
    if report.interrupted is None:
        with _stage(seconds, "score"):
            _end_cut_thoughts(work)
    with _stage(seconds, "aggregate"):
        tasks = _aggregate(work, report)
        from lmms_eval.engine.groups import aggregate_groups

        groups = aggregate_groups(selection.groups, {result.task.name: result for result in tasks})
    earlier = work.earlier_spending
    spent = RunSpending(earlier.model + report.spent, earlier.judge + spending_from(report.judge_spent))
    return RunScores(
        tasks, tuple(groups), report, seconds, store.resumed_responses, store.prompt_fingerprint(),
        check, spent,
    )  # fmt: skip


def _forget(plans: Sequence[TaskPlan], store: RunStore, options: EngineOptions) -> None:
    """Forget recorded answers and scores that the options ask to repeat."""
    if options.forgets_blank:
        store.forget_blank()
    for plan in plans:
        store.forget_unread(plan.task.name, options.aggregate.unread_budget * plan.requested)
    if options.retry_truncated:
        store.forget_truncated()


class _Work(Struct, frozen=True):
    """The work of this process."""

    plans: Sequence[TaskPlan]
    model: Model
    store: RunStore
    options: EngineOptions
    share: Share | None
    ends: TaskEnds
    """The tasks that are not asked any further."""
    looks: Looks | None = None

    @property
    def earlier_spending(self) -> RunSpending:
        """Spending of earlier starts, by the journals of this process."""
        judge = self.options.judge
        return RunSpending(self.store.spent, NOTHING if judge is None else judge.store.spent)

    @property
    def lockstep_team(self) -> Team | None:
        """The processes that take blocks in lockstep, if the model needs that."""
        return self.share.team if self.share is not None and self.model.collective_forward else None

    def lead(self) -> Lead | None:
        """Return the limit of how far the asking is ahead of the documents that count; ``None`` without one.

        Without a rule nothing is decided early; in lockstep, all documents of a block end together.
        """
        if self.looks is None or not self.looks.ruled or self.lockstep_team is not None:
            return None
        processes = 1 if self.share is None else self.share.team.place.size
        from lmms_eval.engine.looks import Lead

        return Lead(self.looks, (2 * self.model.concurrency + self.model.collects) * processes)

    def todo(self, done: dict[str, set[int]], lead: Lead | None) -> Iterator[Unit]:
        """Yield the unfinished documents for this process."""
        sampling = self.options.sampling
        if sampling is not None:
            documents = self._sampled(sampling) if lead is None else lead.passing(self._sampled(sampling))
        else:
            documents = ordered(self.plans, None if self.share is None else self.share.common_order(self.plans))
        if self.share is None:
            return units(documents, done)
        team = self.share.team
        if self.model.collective_forward:
            return dealt_units(documents, done, (team.place.rank, team.place.size))
        total = sum(plan.requested for plan in self.plans)
        if sampling is None:
            return shared_units(documents, total, done, team.next_block)
        return shared_units(documents, total, done, self._next_sampled)

    def _sampled(self, sampling: Sampling) -> Iterator[Unit]:
        """Yield the documents in random order; those that count when a recorded run is scored again."""
        if sampling.recorded is None:
            return sampling.order.units(self.plans)
        counted = {name: set(stop.doc_ids) for name, stop in sampling.early_stops(self.plans, self.store).items()}
        return (
            unit
            for unit in sampling.order.units(self.plans)
            if unit.task.name not in counted or unit.doc_id in counted[unit.task.name]
        )

    def _next_sampled(self, total: int) -> range:
        """Take the next documents of the random order: only a few, so that the first ones are finished early."""
        if self.share is None or all(self.ends.common_reason(plan.task.name) for plan in self.plans):
            return range(total, total)
        return self.share.team.next_block(total, SAMPLED_BLOCK)

    def recall(self) -> None:
        """Apply the rules for stopping early to the documents that earlier starts finished. Raises ``TeamError``."""
        if self.looks is None:
            return
        team = None if self.share is None else self.share.team
        if team is None or team.is_first or (self.share is not None and not self.share.shared_files):
            for record in self.store.records():
                self.looks.note(record)
        if team is not None:
            from lmms_eval.engine.looks import LookExchange

            LookExchange(team, self.looks, self.ends).begin()
        else:
            self.looks.look()


def _progress(work: _Work, done: dict[str, set[int]]) -> ProgressLine:
    plans, options = work.plans, work.options
    finished = sum(len(done.get(plan.task.name, set()).intersection(plan.doc_ids)) for plan in plans)
    running = (lambda: "") if work.looks is None else work.looks.shown
    progress = ProgressLine(sum(plan.requested for plan in plans), finished, options.show_progress, running)
    if options.follow is not None:
        is_first = work.share is None or work.share.team.is_first
        progress.count_by_task(work.store.records() if is_first else ())
        options.follow(progress)
    return progress


def _ask_and_score(
    work: _Work, done: dict[str, set[int]], progress: ProgressLine, seconds: dict[str, float]
) -> AskReport:
    """Ask, judge and score, which overlap. Afterwards all results are in the journals."""
    store, options, share = work.store, work.options, work.share
    work.recall()
    lead = work.lead()
    tasks = [plan.task for plan in work.plans]
    budget = None
    if options.limits is not None:
        counts_earlier = share is None or share.team.is_first or not share.shared_files
        budget = Budget(options.limits, work.earlier_spending, counts_earlier)
    scorer = Scorer(tasks, _keeper(work, progress, lead), options.score_workers, folder=store.folder)
    judging = None
    if options.judge is not None:
        from lmms_eval.engine.judging import Judging

        note_judge = None if budget is None else budget.note_judge
        judging = Judging(options.judge, scorer.submit, scorer.is_behind, note_judge, store.judged_again)
    deliver = _delivery(scorer, judging, lead)
    is_behind = scorer.is_behind if judging is None else lambda: judging.is_behind() or scorer.is_behind()
    # Processes in lockstep must ask the same number of documents, whatever the outcomes in one of them.
    is_given_up = work.ends.reason if work.lockstep_team is None else work.ends.common_reason
    conversations = Conversations(
        DocumentConversations(work.todo(done, lead), deliver, is_given_up, options.retry_truncated),
        store.response if store.resumed_responses else None,
    )
    note_model = None if budget is None else budget.note_model
    driven = Driven(work.model, store, options.cache, note_model, options.on_call, options.keeper)
    asking = Asking(driven, conversations, options.stream, is_behind, lead)
    drive = asking.drive
    if work.looks is not None:
        work.looks.wake = drive.stream.wake
    if lead is not None:
        lead.forms_batches = lambda: drive.stream.forms_batches
    progress.count_tokens = lambda: drive.report.output_tokens
    rank, limit = 0 if share is None else share.team.place.rank, work.model.concurrency
    with Vitals(
        store.folder, rank, lambda: {**progress.counts(), "in_flight": drive.stream.held, "concurrency": limit}
    ):
        try:
            with _stage(seconds, "ask"):
                if share is not None:
                    share.team.watch(asking.others_failed)
                    share.team.count(progress, *([] if budget is None else [budget]))
                _begin_budget(budget, asking, judging, share)
                report = asking.run(options.grace_s, work.lockstep_team, tasks)
            if judging is not None:
                with _stage(seconds, "judge"):
                    _finish_judging(judging, report, options.grace_s, share)
            with _stage(seconds, "score"):
                if not report.cut_short:  # what is not scored now is scored on the next start
                    scorer.drain()
        finally:
            if judging is not None:
                judging.close()
            scorer.close()
            store.sync()
    tokens = drive.report.output_tokens  # of this process: the report is about to receive the counts of the others
    progress.count_tokens = lambda: tokens
    return drive.report


def _keeper(work: _Work, progress: ProgressLine, lead: Lead | None) -> Sink:
    """Return the function that receives the record of each finished document."""
    hopeless = HopelessTasks(work.ends)

    def keep(record: dict[str, Any]) -> None:
        work.store.add_score(record)
        progress.document(record)
        if record["task"] not in hopeless.sound:
            hopeless.note(record)
        if work.looks is not None:
            work.looks.note(record)
        if lead is not None:
            lead.scored()

    return keep


def _delivery(scorer: Scorer, judging: Judging | None, lead: Lead | None) -> Callable[[AnsweredDocument], None]:
    """Return the function that receives each answered document."""
    hand_on = scorer.submit if judging is None else judging.submit
    if lead is None:
        return hand_on
    lead.has_failed = lambda: scorer.has_failed or (judging is not None and judging.has_failed)

    def deliver(document: AnsweredDocument) -> None:
        lead.answered()
        hand_on(document)

    return deliver


def _begin_budget(budget: Budget | None, asking: Asking, judging: Judging | None, share: Share | None) -> None:
    """Let the budget stop the judging and the asking, and check what earlier starts spent."""
    if budget is None:
        return
    if judging is not None:
        budget.watch(lambda _: judging.stop())
    budget.watch(asking.give_up)
    budget.begin(*([] if share is None else [share.team.exchange_counts]))


def _finish_judging(judging: Judging, report: AskReport, grace_s: float, share: Share | None) -> None:
    """Wait for all outstanding verdicts; after a signal only for those of open requests."""
    if not report.cut_short:
        interrupts = Interrupts(judging.stop, grace_s)
        try:
            with interrupts:
                if report.interrupted is not None or (share is not None and share.team.failure):
                    judging.stop()
                    interrupts.end_soon()
                judging.drain()
        except EndNow:
            report.cut_short = True
        if report.interrupted is None:
            report.interrupted = interrupts.signal_number
    judged = judging.report
    report.judge_asked, report.judge_give_up = judged.sent, judged.give_up
    report.judge_cache, report.judge_spent = judging.cache_counts(), to_dict(judged.spent)


def _end_cut_thoughts(work: _Work) -> None:
    """Score documents again whose truncated answers turned out to be unfinished thoughts, not answers.

    Judged documents are not scored again, since their verdicts refer to the text.
    """
    cut = {plan.task.name: work.store.cut_thoughts(plan.task.name) for plan in work.plans if not plan.task.is_judged}
    if not any(cut.values()):
        return
    tasks = [plan.task for plan in work.plans if cut.get(plan.task.name)]
    scorer = Scorer(tasks, work.store.add_score, work.options.score_workers, folder=work.store.folder)
    try:
        for task in tasks:
            for doc_id in cut[task.name]:
                record = work.store.score(task.name, doc_id)
                if record is not None and "failed" not in record:
                    answers = tuple(without_cut_thought(answer_from_record(answer)) for answer in record["answers"])
                    scorer.submit(AnsweredDocument(task, doc_id, answers))
        scorer.drain()
    finally:
        scorer.close()
        work.store.sync()


def _aggregate(work: _Work, report: AskReport) -> tuple[TaskResult, ...]:
    from lmms_eval.engine.aggregate import aggregate_task

    not_asked = ""
    if report.interrupted is not None:
        not_asked = "the run was interrupted before these documents were finished"
    elif report.give_up:
        not_asked = report.give_up if report.give_up_kind == "budget" else f"given up because {report.give_up}"
    sampling = work.options.sampling
    anchors = {} if sampling is None else sampling.anchors
    clusters: dict[str, Clusters] = {}
    interrupted = report.interrupted is not None
    chosen = replace(work.options.aggregate, interrupted=interrupted, anchors=anchors, clusters=clusters)
    stops = {} if sampling is None else sampling.early_stops(work.plans, work.store)
    results = []
    for plan in work.plans:
        order = sampling.order.of(plan) if sampling is not None and (stops or anchors) else None
        reason = not_asked or _given_up(work, plan)
        results.append(aggregate_task(plan, work.store, chosen, reason, order, stops.get(plan.task.name)))
        clusters[plan.task.name] = results[-1].clusters
    if not any(result.task.asks_again for result in results):
        return tuple(results)
    from lmms_eval.engine.noise import with_noise_floors

    return with_noise_floors(results, work.store)


def _given_up(work: _Work, plan: TaskPlan) -> str:
    """Return the reason why this or another process gave a task up; empty if none did."""
    own, failures = work.ends.reason(plan.task.name), work.store.failures(plan.task.name)
    if own or work.share is None or len(failures) < DOCUMENTS:
        return own
    ((reason, _),) = Counter(failures.values()).most_common(1)
    return f"a process could not score any of its first {DOCUMENTS} documents: {reason}"


@contextmanager
def _stage(seconds: dict[str, float], name: str) -> Iterator[None]:
    start = time.monotonic()
    try:
        yield
    finally:
        seconds[name] = seconds.get(name, 0.0) + time.monotonic() - start
