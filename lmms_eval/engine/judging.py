"""Judging during generation: questions about finished documents are sent to the judge as they arise.

One thread gets the questions from the tasks, another drives the judge. A document is passed to the scorer when all its
verdicts have arrived. If the judge fails, its documents stay unscored, but the run continues.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from loguru import logger
from msgspec import Struct, field
from msgspec.structs import replace

from lmms_eval.api.judging import JudgeQuestion, Verdict
from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.model import Model
from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.api.records import ResponseLine
from lmms_eval.api.request import Request, Response, ResponseError, SentMedia, SentMessage, Usage
from lmms_eval.api.task import Task
from lmms_eval.engine.conversations import AnsweredDocument, Conversations
from lmms_eval.engine.drive import AskReport, Drive, Driven
from lmms_eval.engine.prompts import content_fingerprint
from lmms_eval.engine.records import NOTHING, failure, response_from_record, response_record, spent_in
from lmms_eval.engine.stage import LOOK_S, Failure, Stage
from lmms_eval.engine.stream import StreamLimits
from lmms_eval.errors import ItemError, JournalError, LmmsEvalError, TaskError
from lmms_eval.storage.lines import JournalSet, JournalWriter, RecordPlace

if TYPE_CHECKING:
    from lmms_eval.engine.response_cache import CacheKeys, ResponseCache
    from lmms_eval.media.keeper import MediaKeeper

APART = 1000
"""Distance between the numbers of two repetitions of a question; the attempts are numbered in between."""


class Inquiry(Struct, frozen=True):
    """Settings that are common to all questions."""

    judge: str
    """Name of the judge in verdicts."""
    retries: int = 0
    """Number of further attempts if a reply cannot be parsed."""
    again: Container[tuple[str, int]] = frozenset()
    """Documents (task and number) whose unparsable replies from earlier starts do not count as attempts."""
    recalled: Container[str] = frozenset()
    """Ids of requests that were answered from the journal of an earlier start."""


class Interview(Struct):
    """One question with the replies so far: a conversation whose rounds are the attempts to get a parsable reply."""

    question: JudgeQuestion
    place: str
    """The judged document, ``task/doc_id``; part of the ids of requests."""
    task: Task
    doc_id: int
    inquiry: Inquiry
    finish: Callable[[Verdict], None]
    replies: list[str] = field(default_factory=list)
    prompt: str = ""
    usage: Usage | None = None
    thought_tags: None = None
    """The usual tags: thoughts are removed from the judge's replies."""
    attempts: int = 0
    """Number of attempts that count against the retries."""

    def open(self) -> Sequence[Request]:
        attempt = len(self.replies)
        number = attempt + APART * (self.question.asking - 1)
        request = Request(
            id=request_id(self.place, self.question.name, attempt),
            kind="generate_until",
            task=self.task,
            doc_id=self.doc_id,
            build_messages=self._build,
            generation=dict(self.question.generation),
            repeat=number,
            seed=number,
        )
        return (request,)

    def advance(self, responses: Sequence[Response]) -> Sequence[Request] | None:
        (response,) = responses
        self.replies.append(response.text or "")
        self.usage = _added(self.usage, response.usage)
        is_anew = (self.task.name, self.doc_id) in self.inquiry.again
        self.attempts += not (is_anew and response.request_id in self.inquiry.recalled)
        is_read = self.accepts(response)
        if not is_read and self.attempts <= self.inquiry.retries:
            return self.open()
        self._close(is_read)
        return None

    def fail(self, error: ResponseError, responses: Sequence[Response]) -> None:  # noqa: ARG002 - one request a round
        self._close(False, f"{error.kind}: {error.message}")

    def accepts(self, response: Response) -> bool:
        """Return whether a reply can be parsed; if the parser raises, it cannot."""
        if response.error is not None:
            return False
        try:
            return bool(self.question.accepts(response.text or ""))
        except Exception as error:  # noqa: BLE001 - a task's parser may raise anything
            kind = type(error).__name__
            logger.warning("{}: reading the judge's reply raised {}: {}", self.place, kind, error)
            return False

    def added(
        self,
        request: Request,  # noqa: ARG002
        messages: tuple[SentMessage, ...],
        media: Sequence[SentMedia],  # noqa: ARG002
    ) -> tuple[SentMessage, ...]:
        return messages

    def fingerprint(self, messages: ChatMessages) -> str:  # noqa: ARG002 - computed when they were built
        return self.prompt

    def _build(self) -> ChatMessages:
        try:
            messages = self.question.build_messages()
        except (LmmsEvalError, OSError):
            raise
        except Exception as error:  # a task's functions may raise anything
            raise ItemError(failure("preparing the question", error)) from error
        self.prompt = content_fingerprint(messages)
        return messages

    def _close(self, accepted: bool, error: str | None = None) -> None:
        text = self.replies[-1] if self.replies else None
        verdict = Verdict(
            name=self.question.name,
            text=text,
            accepted=accepted,
            model=self.inquiry.judge,
            prompt=self.prompt,
            replies=tuple(self.replies),
            usage=self.usage,
            error=error if text is None else None,
            details=dict(self.question.details),
        )
        self.finish(verdict)


class Case:
    """A document that waits for its verdicts. Raises ``TaskError`` if two questions have the same name."""

    def __init__(
        self, job: AnsweredDocument, questions: Sequence[JudgeQuestion], deliver: Callable[[AnsweredDocument], None]
    ) -> None:
        self._job, self._questions, self._deliver = job, questions, deliver
        names = [question.name for question in questions]
        if len(set(names)) < len(names):
            raise TaskError(f"task {job.task.name!r}: two questions to the judge have the same name: {tuple(names)}")
        self._lock = threading.Lock()
        self._verdicts: dict[str, Verdict] = {}

    def interviews(self, inquiry: Inquiry) -> list[Interview]:
        """Return a conversation for each question."""
        task, doc_id = self._job.task, self._job.doc_id
        place = f"{task.name}/{doc_id}"
        return [Interview(question, place, task, doc_id, inquiry, self._take) for question in self._questions]

    def _take(self, verdict: Verdict) -> None:
        with self._lock:
            self._verdicts[verdict.name] = verdict
            if len(self._verdicts) < len(self._questions):
                return
        verdicts = tuple(self._verdicts[question.name] for question in self._questions)
        self._deliver(replace(self._job, verdicts=verdicts))


def request_id(place: str, question: str, attempt: int = 0) -> str:
    """Return the id of a request to the judge, which is the same on every start."""
    return f"{place}/judge/{question}/{attempt}"


def _added(one: Usage | None, other: Usage | None) -> Usage | None:
    if one is None or other is None:
        return one or other
    pairs = zip(one.to_dict().values(), other.to_dict().values(), strict=True)
    return Usage(*(None if a is None and b is None else (a or 0) + (b or 0) for a, b in pairs))


PATTERN = "judgements-*.jsonl"


class JudgementStore:
    """The journals of judgements in a folder (a ``drive.Journal``); this process writes the one of its rank."""

    def __init__(self, folder: Path, keys: CacheKeys, rank: int = 0) -> None:
        self._keys = keys
        self._lock = threading.Lock()
        self._journals = JournalSet()
        self._known: dict[tuple[str, str], RecordPlace] = {}
        self._prompts_kept: set[str] = set()
        """Fingerprints of the prompts whose messages are in the journals."""
        self._open: dict[str, str] = {}
        """Keys of the open requests, by id."""
        self.recalled: set[str] = set()
        """Ids of the requests that were answered from the journal."""
        self.spent = NOTHING
        """Spending of earlier starts."""
        self._writer = JournalWriter(folder / f"judgements-{rank}.jsonl")  # first, as in RunStore
        for path in sorted(folder.glob(PATTERN)):
            for place, record in self._journals.load(path, kind=ResponseLine):
                self.spent += spent_in(record)
                if "messages" in record:
                    self._prompts_kept.add(record.get("prompt", ""))
                if "id" in record and "key" in record and "error" not in record:
                    self._known[record["id"], record["key"]] = place

    @property
    def ids(self) -> set[str]:
        """Ids of the requests that any judge replied to in an earlier start."""
        return {request_id for request_id, _ in self._known}

    def recall(self, request: Request, build_messages: Callable[[], ChatMessages]) -> Response | None:
        """Return the recorded reply of an earlier start.

        Raises:
            MediaError: a picture, video or sound cannot be read.
            VolatileValue: a generation option or a part of a message cannot be hashed.
        """
        key = self._keys.key(request, build_messages())
        place = self._known.get((request.id, key))
        if place is not None:
            self.recalled.add(request.id)
            return response_from_record(self._journals.at(place))
        self._open[request.id] = key
        return None

    def keep(self, response: Response, prompt: str) -> Response:
        """Write a reply. Raises ``JournalError``."""
        key = self._open.pop(response.request_id, "")  # empty if the prompt could not be rendered
        record = {**response_record(response, prompt), "key": key}
        if "messages" in record:
            with self._lock:
                if prompt in self._prompts_kept:
                    del record["messages"]
                self._prompts_kept.add(prompt)
        self._writer.append(record)
        return response

    def sync(self) -> None:
        self._writer.sync()

    def close(self) -> None:
        self._writer.close()
        self._journals.close()


QUEUE_LENGTH = 256
LEAST_OPEN = 64
"""Minimum number of documents that may wait for verdicts at the same time."""
CLOSING_S = 5.0
QUIET_S = 600.0
"""A judge that is asked in batches gets what has arrived after this time without a further document."""
ENDED = "the judge ended without answering this question"


class JudgeSetup(Struct, frozen=True):
    """A judge with its journal and settings."""

    model: Model
    name: str
    """Name of the judge in verdicts and results."""
    store: JudgementStore
    retries: int = 2
    stream: StreamLimits = field(default_factory=StreamLimits)
    cache: ResponseCache | None = None
    """Replies of earlier runs. Its owner closes it."""
    on_call: Callable[[Request, Response], None] | None = None
    """Called with every question and the judge's reply."""
    keeper: MediaKeeper | None = None
    """Keeps media of the questions that have no file of their own. Its owner closes it."""


class Judging:
    """Receives finished documents and passes them with their verdicts to ``deliver``."""

    def __init__(
        self,
        setup: JudgeSetup,
        deliver: Callable[[AnsweredDocument], None],
        is_behind: Callable[[], bool],
        on_paid: Callable[[Response], None] | None = None,
        again: Container[tuple[str, int]] = frozenset(),
    ) -> None:
        """Prepare the threads, which start with the first document.

        Args:
            deliver: receives each document with its verdicts.
            is_behind: returns whether ``deliver`` would block, which must not stop the judge's event loop.
            on_paid: called with every reply of the judge.
            again: ``Inquiry.again``.
        """
        self._name, self._store, self._deliver = setup.name, setup.store, deliver
        self._cache = setup.cache
        self._inquiry = Inquiry(setup.name, setup.retries, again, setup.store.recalled)
        self._conversations = Conversations(is_fed=True)
        driven = Driven(setup.model, setup.store, setup.cache, on_paid, setup.on_call, setup.keeper)
        limits = replace(setup.stream, least_requests=8)
        self._drive = Drive(driven, self._conversations, limits, is_behind)
        if setup.model.collects:
            self._drive.stream.is_fed = self._may_feed
        self._fed_at = time.monotonic()
        self._is_full = False
        """There is no room for a further document before one is judged."""
        self._room = threading.Semaphore(max(LEAST_OPEN, 4 * setup.model.concurrency, setup.model.collects))
        self._failure = Failure(on_error=self._drive.stop)
        self._jobs = Stage(self._put_questions, self._failure, "judge-questions", length=QUEUE_LENGTH)
        self._driver = self._failure.thread(self._ask, "judge")

    @property
    def report(self) -> AskReport:
        return self._drive.report

    @property
    def has_failed(self) -> bool:
        """Whether an error has ended the work, which ``submit`` raises."""
        return self._failure.error is not None

    def is_behind(self) -> bool:
        """Return whether ``submit`` might block."""
        return self._jobs.is_full

    def submit(self, job: AnsweredDocument) -> None:
        """Queue a document, or deliver it if it needs no judge; blocks while full. Raises ``JournalError``."""
        if not job.task.is_judged or job.reason:
            self._failure.check()
            self._deliver(job)
        else:
            self._jobs.put(job)

    def stop(self) -> None:
        """Ask nothing more; open requests may finish. Documents without all verdicts are left for another start."""
        self._jobs.stop()
        self._drive.stop()

    def drain(self) -> None:
        """Wait until every document is judged and delivered. Raises ``JournalError``."""
        self._jobs.drain()
        if self._driver.ident is not None:
            self._driver.join()
        self._failure.check()

    def close(self) -> None:
        """End the threads without waiting for open requests."""
        self.stop()
        deadline = time.monotonic() + CLOSING_S
        self._jobs.join(CLOSING_S)
        if self._driver.ident is not None:
            self._driver.join(timeout=max(0.0, deadline - time.monotonic()))
        self._drive.stream.close()
        self._store.sync()

    def cache_counts(self) -> dict[str, int]:
        return {} if self._cache is None else self._cache.counts()

    def _put_questions(self, jobs: Iterator[AnsweredDocument]) -> None:
        """Get the questions about each document from its task, and open their conversations."""
        self._driver.start()
        try:
            for job in jobs:
                if not self._take_room():
                    return
                self._begin(job)
        finally:
            self._conversations.is_fed = False
            self._drive.stream.wake()

    def _take_room(self) -> bool:
        while not self._room.acquire(timeout=LOOK_S):
            self._is_full = True
            if self._drive.is_stopped:
                return False
        self._is_full = False
        return True

    def _may_feed(self) -> bool:
        """Return whether a judge that is asked in batches should wait for further documents."""
        is_quiet = time.monotonic() - self._fed_at > QUIET_S
        return self._conversations.is_fed and not (self._is_full or is_quiet)

    def _begin(self, job: AnsweredDocument) -> None:
        try:
            questions = job.task.judge_questions(job.doc_id, job.answers)
            interviews = Case(job, questions, self._hand_on).interviews(self._inquiry)
        except NotEvaluated:  # scoring will miss the same part and report it
            interviews = []
        except Exception as error:  # noqa: BLE001 - a task's functions may raise anything: this sample fails
            interviews = []
            job = replace(job, error=failure("asking for the judge's questions", error))
        if not interviews:
            self._hand_on(job)
            return
        self._fed_at = time.monotonic()
        self._drive.stream.push([request for one in interviews for request in self._conversations.begin(one)])

    def _hand_on(self, job: AnsweredDocument) -> None:
        self._room.release()
        self._deliver(job)

    def _ask(self) -> None:
        """Drive the judge until all is asked or the judge ends."""
        reason = ""
        try:
            self._drive.run()
        except JournalError:
            raise
        except Exception as error:  # noqa: BLE001 - a broken judge leaves documents unscored but does not end the run
            logger.opt(exception=True).warning("the judge {} failed", self._name)
            reason = f"the judge ended with {type(error).__name__}: {error}"
        self._drive.stream.stop()
        report = self._drive.report
        if self._drive.is_stopped and not report.give_up and not reason:
            return
        report.give_up = report.give_up or reason
        self._drive.fail_open(report.give_up or ENDED)
