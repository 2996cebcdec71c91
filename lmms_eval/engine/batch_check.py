"""``--check_batch``: requests are asked again alone, and answers that depended on their batch are reported.

The answers of the check go nowhere else: not into the journals, the cache or the scores.
"""

from __future__ import annotations

import math
import threading
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

from lmms_eval.api.interleaved import response_text
from lmms_eval.api.model import Model
from lmms_eval.api.request import Request, Response
from lmms_eval.api.task import Task, is_retry
from lmms_eval.engine.records import RESPONSE, response_from_record
from lmms_eval.engine.signals import EndNow, Interrupts, run_coroutine
from lmms_eval.engine.store import RunStore
from lmms_eval.errors import ModelError
from lmms_eval.filters.reasoning import thoughts_apart
from lmms_eval.storage.lines import JournalSet, Place

SHOWN_CHARACTERS = 200
TOLERANCE = 1e-4
"""Relative, of log-likelihoods."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Difference:
    """A request that was answered otherwise when it was alone."""

    request_id: str
    """As in the journal."""
    recorded: str
    """Answer of the run."""
    alone: str
    """Both cut to 200 characters."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A request that could not be asked again."""

    request_id: str
    """As in the journal."""
    reason: str
    """Why."""


@dataclass(slots=True)
class BatchCheck:
    """Findings of the check."""

    asked: int = 0
    """Requests that got an answer when asked again."""
    in_batches: int = 0
    """Those among them that had others in their batch."""
    rows: list[Difference] = field(default_factory=list)
    failed: list[Trouble] = field(default_factory=list)
    stopped: str = ""
    """Reason for which the check was not made, or not to its end."""

    def to_dict(self) -> dict[str, Any]:
        """``batch_check`` of the results document."""
        return {
            "asked": self.asked,
            "in_batches": self.in_batches,
            "differing": len(self.rows),
            "rows": [asdict(row) for row in self.rows],
            "failed": [asdict(trouble) for trouble in self.failed],
            "stopped": self.stopped,
        }

    def line(self) -> str:
        """Line for the screen."""
        text = f"batch check: {len(self.rows)} of {self.asked} answers differ when asked alone"
        if self.failed:
            first = self.failed[0]
            text += f"; {len(self.failed)} could not be asked again, the first one {first.request_id}: {first.reason}"
        if self.stopped:
            text += f"; {self.stopped}"
        return text


class Answered:
    """The good responses in the journals of a run's folder, those of other processes included."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._journals = JournalSet()
        self._places: dict[str, Place] = {}
        self._batched: set[str] = set()
        for path in sorted(store.folder.glob("responses-*.jsonl")):
            for place, record in self._journals.load(path, quietly=True, shape=RESPONSE):
                if "id" in record and "error" not in record:
                    self._places[record["id"]] = place
                    self._batched.discard(record["id"])
                    if len(record.get("batch", ())) > 1:
                        self._batched.add(record["id"])

    def response(self, request_id: str) -> Response:
        """Read a recorded answer. Raises ``KeyError`` for a request without a good one."""
        response = response_from_record(self._journals.at(self._places[request_id]))
        return replace(response, parts=self._store.images.located(response.parts))

    def in_batch(self, request_id: str) -> bool:
        return request_id in self._batched

    def choose(self, count: int, tasks: Sequence[str]) -> list[str]:
        """``count`` requests, spread evenly over those that had others in their batch, then over the rest."""
        known = [name for name in self._places if not is_retry(name) and _position(name).task in tasks]
        ids = sorted(known, key=lambda name: _order(_position(name), tasks))
        batched = [name for name in ids if self.in_batch(name)]
        first = spread(batched, count)
        return first + spread([name for name in ids if not self.in_batch(name)], count - len(first))

    def close(self) -> None:
        self._journals.close()


@dataclass(frozen=True, slots=True)
class _Position:
    """The parts of a request's id."""

    task: str
    doc_id: int
    repeat: int
    round: int
    index: int


def _position(request_id: str) -> _Position:
    task, *numbers = request_id.rsplit("/", 4)
    return _Position(task, *map(int, numbers))


def _order(place: _Position, tasks: Sequence[str]) -> list[int]:
    return [tasks.index(place.task), place.doc_id, place.repeat, place.round, place.index]


def spread(items: Sequence[T], count: int) -> list[T]:
    """``count`` items at even distances, all if there are no more."""
    taken = max(0, min(count, len(items)))
    return [items[number * len(items) // taken] for number in range(taken)]


def check_batch(tasks: Sequence[Task], model: Model, store: RunStore, count: int, grace_s: float) -> BatchCheck:
    """Ask ``count`` answered requests again, one at a time.

    A request that cannot be asked is reported; the first signal ends the check after the request in flight.
    """
    check, stop = BatchCheck(), threading.Event()
    answered = Answered(store)
    by_name = {task.name: task for task in tasks}
    interrupts = Interrupts(stop.set, grace_s)
    try:
        with interrupts:
            for name in answered.choose(count, list(by_name)):
                if stop.is_set():
                    break
                _check_one(name, by_name[_position(name).task], model, answered, check)
    except EndNow:
        stop.set()
    finally:
        answered.close()
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
        check.rows.append(Difference(name, _shown(recorded), _shown(alone)))


def build_again(request_id: str, task: Task, answered: Answered) -> Request:
    """The request of a document's conversation, its earlier rounds answered as they were.

    Raises:
        ModelError: the conversation has no such request any more. What the task's own functions raise passes through.
    """
    place = _position(request_id)
    exchange = task.exchange(place.doc_id, place.repeat)
    requests = exchange.open()
    while requests:
        found = next((request for request in requests if request.id == request_id), None)
        if found is not None:
            return found
        requests = exchange.advance(
            [thoughts_apart(answered.response(request.id), task.thought_tags) for request in requests]
        )
    raise ModelError(f"{request_id}: the document asks no such question now")


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
    """One request in a stream of its own.

    Raises:
        ModelError: the model gave no answer. Whatever else the model raises passes through.
    """
    responses = model.respond(_Alone(model.prepare(request)))
    found = run_coroutine(_all(responses)) if isinstance(responses, AsyncIterator) else list(responses)
    if [response.request_id for response in found] != [request.id]:
        raise ModelError(f"the model gave {len(found)} answers to one request")
    return found[0]


async def _all(responses: AsyncIterator[Response]) -> list[Response]:
    return [response async for response in responses]


def is_same(recorded: Response, alone: Response) -> bool:
    """Equal texts and pictures, or likelihoods that agree within ``TOLERANCE``."""
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
