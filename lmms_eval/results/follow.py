"""Following a run by its journals: each look reads the records that were added since the last look."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from lmms_eval.engine.headline import HeadlinePart, Prefix
from lmms_eval.engine.live import VITALS, RunOutline, TaskOutline, read_outline
from lmms_eval.engine.looks import number_of
from lmms_eval.errors import DataError
from lmms_eval.results.facts import part_of, record_facts
from lmms_eval.results.files import read_state, state_of
from lmms_eval.results.journals import Finished, Journals, TaskCounts
from lmms_eval.results.run import Run, run_of
from lmms_eval.storage.lines import JournalReplaced
from lmms_eval.storage.run_folder import has_live_owner

WINDOW_S = 60.0
"""Span of the current rate in seconds."""
LEAST_S = 3.0
"""Shorter observations give no rate."""


class Pace:
    """Rates over the last minute, or over the observed part of it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, int, int]] = deque()

    def see(self, done: int, tokens: int) -> None:
        """Record the run's progress."""
        now = self._clock()
        self._seen.append((now, done, tokens))
        while len(self._seen) > 2 and self._seen[1][0] <= now - WINDOW_S:
            self._seen.popleft()

    def rates(self) -> tuple[float, float] | None:
        """Return documents and tokens per second; ``None`` while the observation is too short."""
        if not self._seen:
            return None
        begin, done, tokens = self._seen[0]
        end, done_now, tokens_now = self._seen[-1]
        span = end - begin
        if span < LEAST_S:
            return None
        return max(0, done_now - done) / span, max(0, tokens_now - tokens) / span


STALE_S = 10.0
"""Signs that are older than the newest ones by more than this come from a process that is gone."""


class Signs(Struct, frozen=True, kw_only=True):
    """Signs of life of a process of the run; ``None`` for values that it does not report."""

    host: str = ""
    pid: int | None = None
    time: float
    started: float | None = None
    memory: int | None = None
    """Bytes."""
    in_flight: int | None = None
    """Requests sent to the model and not answered yet."""
    concurrency: int | None = None
    done: int | None = None
    """Documents finished since the process started."""


def read_signs(folder: Path) -> list[Signs]:
    """Read the signs of all processes, without those of processes killed in an earlier launch."""
    found: list[Signs] = []
    for path in sorted(folder.glob(VITALS)):
        with suppress(OSError, msgspec.DecodeError):  # it is being replaced, or damaged
            found.append(msgspec.json.decode(path.read_bytes(), type=Signs))
    newest = max((signs.time for signs in found), default=0.0)
    return [signs for signs in found if signs.time >= newest - STALE_S]


REST = 20
"""Recounting pauses for this many times as long as the last recount took."""
OUTSIDE = "a score lies outside the range that its metric states"
WAITS = "the first documents of the random order are not finished yet"
AT_END = "the interval over all documents comes with the results"


class ScoreSoFar(Struct, frozen=True):
    """A number over the first ``n`` of ``of`` documents in the random order."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    of: int
    reason: str
    """Why the interval is missing."""


class RunningScore:
    """A number over the first documents of the random order, with an interval that holds at every look.

    ``parts`` are the tasks that it covers, ``orders`` their documents in random order.
    """

    def __init__(self, parts: Sequence[HeadlinePart], orders: Mapping[str, Sequence[int]]) -> None:
        self._parts, self._orders = {part.task: part for part in parts}, orders
        self._numbers: dict[str, dict[int, float | None]] = {part.task: {} for part in parts}
        self._prefix = self._begun()
        self._is_stale = False
        self._next_begin = 0.0

    def note(self, record: Mapping[str, Any]) -> None:
        """Add the journal record of a document that is finished, possibly for a second time."""
        part = self._parts.get(record["task"])
        if part is None:
            return
        numbers, doc_id, number = self._numbers[part.task], record["doc_id"], number_of(record, part)
        self._is_stale |= doc_id in numbers and numbers[doc_id] != number
        numbers[doc_id] = number

    def shown(self) -> ScoreSoFar:
        """Return the number as it is now."""
        begin = time.monotonic()
        if self._is_stale and begin >= self._next_begin:  # a failed request was sent again
            self._prefix, self._is_stale = self._begun(), False
            self._prefix.advance(self._find)
            end = time.monotonic()
            self._next_begin = end + REST * (end - begin)
        prefix = self._prefix
        prefix.advance(self._find)
        value, interval = prefix.value(), prefix.shown_interval()
        reason = ""
        if interval is None:
            reason = OUTSIDE if prefix.lies_outside else WAITS if not prefix.counted else AT_END
        low, high = (None, None) if interval is None else (interval.low, interval.high)
        of = sum(len(self._orders[task]) for task in self._parts)
        return ScoreSoFar(value, low, high, prefix.length, of, reason)

    def _begun(self) -> Prefix:
        return Prefix([*self._parts.values()], self._orders)

    def _find(self, part: HeadlinePart, doc_id: int) -> float | None:
        return self._numbers[part.task][doc_id]


MOST_REASONS = 20


class TaskSnapshot(Struct, frozen=True):
    """One task of a run at one moment."""

    name: str
    requested: int
    done: int
    failed: int
    score: ScoreSoFar | None
    reason: str
    """Why the task has no running score."""


class Snapshot(Struct, frozen=True):
    """A run at one moment; ``None`` for unknown values."""

    state: str
    """The state of its record, but ``interrupted`` if it is ``running`` without a live process; or ``deleted``."""
    is_going: bool
    is_read: bool
    """Whether the journals were read to their end once."""
    requested: int
    done: int
    scored: int
    unscored: int
    failed: int
    rate: float | None
    """Documents per second over the last minute, or the observed part of it."""
    rate_overall: float | None
    """Documents per second since this start of the run."""
    seconds_left: float | None
    tokens_in: int
    tokens_out: int
    token_rate: float | None
    in_flight: int | None
    concurrency: int | None
    processes: Sequence[Signs]
    score: ScoreSoFar | None
    """The number of the whole run, if it has one."""
    reasons: Sequence[tuple[str, int]]
    """Why documents have no score, the most frequent reason first."""
    tasks: Sequence[TaskSnapshot]


def _total(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


BUDGET_S = 0.3
"""Most seconds of one look. The next looks read the rest of a large journal."""


def _marks(state: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return marks that change when a run with the same key starts from scratch, or stops early."""
    return state.get("stamp"), state.get("date"), part_of(state, "early_stops")


class FollowedRun:
    """A run that is read again as its journals grow. Not safe for use by several threads at once.

    ``take`` is called for every finished document, before the look that found it returns. A look takes at most
    ``budget_s`` seconds.
    """

    def __init__(
        self, folder: Path, take: Callable[[Finished], None] | None = None, budget_s: float = BUDGET_S
    ) -> None:
        self.folder, self._take, self._budget_s = folder, take, budget_s
        self.begun = 0
        """Increases when the run starts from scratch and its journals are read from the beginning."""
        self._begin()

    def _begin(self) -> None:
        self.begun += 1
        self.record: Mapping[str, Any] = read_state(self.folder)
        self.outline: RunOutline = read_outline(self.folder)
        self.problems: dict[str, None] = {}
        """Sentences about what could not be read."""
        self.journals = Journals(self.folder, self._counted())
        self._scores: dict[str, tuple[Mapping[str, RunningScore], RunningScore | None]] = {}
        """By settings, the running scores of the tasks and of the whole run."""
        self._pace = Pace()
        self.processes: Sequence[Signs] = ()
        self.is_read = False
        """Whether the journals were read to their end once."""
        self.is_going = False
        self.is_gone = False

    def _counted(self) -> dict[str, set[int]]:
        """Return the documents that count of tasks that stopped early."""
        facts = record_facts(self.record)
        stopped = part_of(facts, "early_stop")
        try:
            journals = Journals.read(self.folder) if stopped else None
            return {} if journals is None else {task: set(journals.counted(task, facts)) for task in stopped}
        except DataError as error:
            self.problems[str(error)] = None
            return {}

    @property
    def run(self) -> Run:
        """The run as far as it was read, without documents that are not scored yet. Raises ``DataError``."""
        return run_of(self.journals, self.record)

    @property
    def key(self) -> str:
        """Key of the settings whose documents count: the settings of the latest score."""
        return self.journals.key

    @property
    def tasks(self) -> Mapping[str, TaskCounts]:
        """The documents that count, by task."""
        return self.journals.tasks

    @property
    def state(self) -> str:
        """State of the run, by its record and its live processes."""
        return "deleted" if self.is_gone else state_of(self.record, self.is_going)

    @property
    def damaged(self) -> int:
        """Skipped lines of the journals. The last line of a running run may be incomplete and does not count."""
        return self.journals.tails.damaged if self.is_going else self.journals.damaged

    def look(self) -> bool:
        """Read new records and return whether anything changed, which is always true while the run continues."""
        was = self._facts()
        self._look_around()
        if not self.is_gone:
            self._read_news()
        return self.is_going or self._facts() != was

    def snapshot(self) -> Snapshot:
        """Return the numbers as they are now."""
        tasks, (running, whole) = self.tasks, self._scores.get(self.key, ({}, None))
        found = tasks.values()
        scores = {task: score.shown() for task, score in running.items()}
        outlines = dict(self.outline.tasks)  # and tasks that only the journals name
        outlines |= {name: TaskOutline(task.done, reason="") for name, task in tasks.items() if name not in outlines}
        requested, done = sum(task.requested for task in outlines.values()), sum(task.done for task in found)
        reasons: Counter[str] = sum((task.reasons for task in found), Counter())
        rate, token_rate = self._pace.rates() or (None, None)
        # documents per second since the first process started
        begun = min((signs.started for signs in self.processes if signs.started is not None), default=time.time())
        ended, span = _total([signs.done for signs in self.processes]), time.time() - begun
        overall = (
            ended / span if ended and span >= 1 else None
        )  # the signs lag behind the journals: 0 is not yet a rate
        present = rate or overall
        # a local model also takes requests for the batches after the present one: then its concurrency limits nothing
        taken = _total([signs.in_flight for signs in self.processes])
        limit = _total([signs.concurrency for signs in self.processes])
        shown = []
        for name, outline in outlines.items():
            task = tasks.get(name) or TaskCounts()
            failed = task.counts["failed"]
            shown.append(TaskSnapshot(name, outline.requested, task.done, failed, scores.get(name), outline.reason))
        return Snapshot(
            state=self.state,
            is_going=self.is_going,
            is_read=self.is_read,
            requested=requested,
            done=done,
            scored=sum(task.counts["scored"] for task in found),
            unscored=sum(task.counts["unscored"] for task in found),
            failed=sum(task.counts["failed"] for task in found),
            rate=rate,
            rate_overall=overall,
            seconds_left=max(0, requested - done) / present if present else None,
            tokens_in=sum(task.tokens_in for task in found),
            tokens_out=sum(task.tokens_out for task in found),
            token_rate=token_rate,
            in_flight=taken,
            concurrency=None if limit is not None and (taken or 0) > limit else limit,
            processes=tuple(self.processes),
            score=None if whole is None else whole.shown(),
            reasons=(+reasons).most_common(MOST_REASONS),
            tasks=tuple(shown),
        )

    def _facts(self) -> tuple[Any, ...]:
        version = sum(task.version for task in self.tasks.values())
        counts = (self.begun, self.key, version, len(self.problems), self.damaged)
        return (*counts, self.is_going, self.is_gone, self.is_read, dict(self.record))

    def _look_around(self) -> None:
        """Read the small files about the state of the run."""
        if not self.folder.is_dir():
            self.is_gone, self.is_going, self.processes = True, False, ()
            return
        self.is_gone = False
        state = read_state(self.folder) or self.record
        if _marks(state) != _marks(self.record):
            self._begin()
        self.record = state
        if not self.outline.tasks:
            self.outline = read_outline(self.folder)
        self.is_going = state.get("state") == "running" and has_live_owner(self.folder)
        self.processes = read_signs(self.folder) if self.is_going else ()

    def _read_news(self) -> None:
        end = time.monotonic() + self._budget_s
        is_read = True
        try:
            with closing(self.journals.news()) as news:
                for found in news:
                    self._see(found)
                    if time.monotonic() > end:
                        is_read = False
                        break
        except JournalReplaced:
            self._begin()
            return
        except DataError as error:
            self.problems[str(error)] = None
        self.problems |= self.journals.problems
        self.journals.choose_key()
        self.is_read = self.is_read or is_read
        if self.is_read:
            tasks = self.tasks.values()
            tokens = sum(task.tokens_in + task.tokens_out for task in tasks)
            self._pace.see(sum(task.done for task in tasks), tokens)

    def _see(self, found: Finished) -> None:
        if found.key not in self._scores:
            tasks = self.outline.tasks
            orders = {name: task.order for name, task in tasks.items()}
            scores = {name: RunningScore([task.part], orders) for name, task in tasks.items() if task.part is not None}
            whole = RunningScore(self.outline.whole, orders) if len(self.outline.whole) > 1 else None
            self._scores[found.key] = scores, whole
        running, of_run = self._scores[found.key]
        try:
            for score in (running.get(found.task), of_run):
                if score is not None:
                    score.note(found.record)
        except (KeyError, TypeError, AttributeError) as error:
            self.problems[f"{found.task}, document {found.doc_id}: no number can be read ({error})"] = None
        if self._take is not None:
            self._take(found)
