"""``--check_batch``: asks requests again one at a time, and reports answers that depended on their batch.

The new answers are only compared. They do not enter the journals, the cache or the scores.
"""

from __future__ import annotations

import math
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from lmms_eval.api.interleaved import response_text
from lmms_eval.api.model import Model
from lmms_eval.api.records import ResponseLine
from lmms_eval.api.request import Request, Response, task_of
from lmms_eval.api.task import Task, is_retry
from lmms_eval.engine.records import response_from_record
from lmms_eval.engine.signals import EndNow, Interrupts, run_coroutine
from lmms_eval.engine.store import RunStore
from lmms_eval.errors import ModelError
from lmms_eval.filters.reasoning import thoughts_apart
from lmms_eval.storage.lines import JournalTails, RecordPlace
from lmms_eval.utils.records import to_dict

SHOWN_CHARACTERS = 200
TOLERANCE = 1e-4
"""Relative tolerance for log probabilities."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BatchDifference:
    """A request with a different answer when it was asked alone; both answers are cut to 200 characters."""

    request_id: str
    """Id of the request in the journal."""
    recorded: str
    """Answer in the run."""
    alone: str
    """Answer when asked alone."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A request that could not be asked again."""

    request_id: str
    """Id of the request in the journal."""
    reason: str
    """Reason for the failure."""


class BatchCheck(Struct):
    """The findings of the check."""

    asked: int = 0
    """Number of requests that got an answer when asked again."""
    in_batches: int = 0
    """Number of these that shared their batch with other requests."""
    rows: list[BatchDifference] = field(default_factory=list)
    failed: list[Trouble] = field(default_factory=list)
    stopped: str = ""
    """Reason why the check was skipped or ended early."""

    def to_dict(self) -> dict[str, Any]:
        """Return ``batch_check`` of the results document."""
        return {
            "asked": self.asked,
            "in_batches": self.in_batches,
            "differing": len(self.rows),
            "rows": [to_dict(row) for row in self.rows],
            "failed": [to_dict(trouble) for trouble in self.failed],
            "stopped": self.stopped,
        }

    def line(self) -> str:
        """Return a summary for the terminal."""
        text = f"batch check: {len(self.rows)} of {self.asked} answers differ when asked alone"
        if self.failed:
            first = self.failed[0]
            text += f"; {len(self.failed)} could not be asked again, the first one {first.request_id}: {first.reason}"
        if self.stopped:
            text += f"; {self.stopped}"
        return text


class Answered:
    """The successful responses in the journals of a run's folder, including those of other processes."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._journals = JournalTails(store.folder, "responses-*.jsonl", ResponseLine)
        self._places: dict[str, RecordPlace] = {}
        self._batched: set[str] = set()
        for place, record in self._journals.news():
            if "error" not in record:
                self._places[record["id"]] = place
                self._batched.discard(record["id"])
                if len(record.get("batch", ())) > 1:
                    self._batched.add(record["id"])

    def response(self, request_id: str) -> Response:
        """Return a recorded response. Raises ``KeyError`` for a request without a successful one."""
        response = response_from_record(self._journals.at(self._places[request_id]))
        return replace(response, parts=self._store.images.located(response.parts))

    def in_batch(self, request_id: str) -> bool:
        return request_id in self._batched

    def choose(self, count: int, tasks: Sequence[str]) -> list[str]:
        """Choose ``count`` requests evenly: first of those that shared their batch, then of the rest."""
        order = {task: number for number, task in enumerate(tasks)}
        known = [name for name in self._places if not is_retry(name) and task_of(name) in order]
        ids = sorted(known, key=lambda name: (order[task_of(name)], _numbers(name)))
        batched = [name for name in ids if self.in_batch(name)]
        first = spread(batched, count)
        return first + spread([name for name in ids if not self.in_batch(name)], count - len(first))


def _numbers(request_id: str) -> list[int]:
    """Return the document, repeat, round and index of a request's id."""
    return [int(number) for number in request_id.rsplit("/", 4)[1:]]


def spread(items: Sequence[T], count: int) -> list[T]:
    """Return ``count`` items at even distances, or all if there are fewer."""
    taken = max(0, min(count, len(items)))
    return [items[number * len(items) // taken] for number in range(taken)]


def check_batch(tasks: Sequence[Task], model: Model, store: RunStore, count: int, grace_s: float) -> BatchCheck:
    """Ask ``count`` answered requests again, one at a time.

    Requests that cannot be asked are reported. The first signal ends the check after the current request.
    """
    check, stop = BatchCheck(), threading.Event()
    answered = Answered(store)
    by_name = {task.name: task for task in tasks}
    interrupts = Interrupts(stop.set, grace_s)
    with suppress(EndNow), interrupts:
        for name in answered.choose(count, list(by_name)):
            if stop.is_set():
                break
            _check_one(name, by_name[task_of(name)], model, answered, check)
    if interrupts.signal_number is not None:
        check.stopped = "interrupted, so not all were asked"
    return check


def _check_one(name: str, task: Task, model: Model, answered: Answered, check: BatchCheck) -> None:
    try:
        recorded = thoughts_apart(answered.response(name), task.thought_tags)
        alone = thoughts_apart(ask_alone(model, build_again(name, task, answered)), task.thought_tags)
    except Exception as error:  # noqa: BLE001 - code of tasks and models may raise anything: this request's check failed
        check.failed.append(Trouble(name, f"{type(error).__name__}: {error}"))
        return
    if alone.error is not None:
        check.failed.append(Trouble(name, f"{alone.error.kind}: {alone.error.message}"))
        return
    check.asked += 1
    check.in_batches += answered.in_batch(name)
    if not is_same(recorded, alone):
        check.rows.append(BatchDifference(name, _shown(recorded), _shown(alone)))


def build_again(request_id: str, task: Task, answered: Answered) -> Request:
    """Rebuild a request by replaying the recorded answers of the earlier rounds.

    Exceptions of the task's functions pass through. Raises ``ModelError`` if the conversation no longer has this
    request.
    """
    doc_id, repeat, *_ = _numbers(request_id)
    exchange = task.exchange(doc_id, repeat)
    requests = exchange.open()
    while requests:
        found = next((request for request in requests if request.id == request_id), None)
        if found is not None:
            return found
        requests = exchange.advance(
            [thoughts_apart(answered.response(request.id), task.thought_tags) for request in requests]
        )
    raise ModelError(f"{request_id}: the document no longer asks this question")


class _Alone:
    """A ``RequestStream`` of one request."""

    def __init__(self, request: Request) -> None:
        self._waiting = [request]

    def take(self, max_n: int) -> list[Request]:
        taken, self._waiting = self._waiting[:max_n], self._waiting[max_n:]
        return taken

    def take_full(self, max_n: int) -> list[Request] | None:
        return self.take(max_n)

    async def take_async(self, max_n: int) -> list[Request]:
        return self.take(max_n)

    def put_away(self, request: Request) -> None:
        request.free()


def ask_alone(model: Model, request: Request) -> Response:
    """Return the response to a single request. Other exceptions of the model pass through.

    Raises ``ModelError`` if the model did not answer exactly once.
    """

    async def collect(responses: AsyncIterator[Response]) -> list[Response]:
        return [response async for response in responses]

    responses = model.respond(_Alone(model.prepare(request)))
    found = run_coroutine(collect(responses)) if isinstance(responses, AsyncIterator) else list(responses)
    if [response.request_id for response in found] != [request.id]:
        raise ModelError(f"the model gave {len(found)} answers to one request")
    return found[0]


def is_same(recorded: Response, alone: Response) -> bool:
    """Return whether texts and pictures are equal, or log probabilities agree within ``TOLERANCE``."""
    if recorded.loglikelihood is None or alone.loglikelihood is None:
        return _written(recorded) == _written(alone)
    return math.isclose(recorded.loglikelihood, alone.loglikelihood, rel_tol=TOLERANCE)


def _written(response: Response) -> tuple[Any, ...]:
    thoughts = "" if response.thoughts is None else response.thoughts.text
    return response.text, response.parts, response.rounds, thoughts


def _shown(response: Response) -> str:
    if response.loglikelihood is not None:
        return f"{response.loglikelihood:.6g}"
    text = response_text(response)
    pictures = [part.file_name for part in response.parts if not isinstance(part, str)]
    return f"{text}{''.join(f' [{name}]' for name in pictures)}"[:SHOWN_CHARACTERS]
