"""Blocks of equal size in all processes of a launch, for models whose forward passes meet in collectives.

Documents are dealt out in turn. Before each block the processes tell one another, through the launch's store, which
requests they hold; all then hand out as many of one task as the fullest holds. Who has fewer repeats its last request,
or asks one that another process holds, and the answer to that is thrown away. Requests of a block that failed
are asked again one at a time, in lockstep too.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lmms_eval.api.request import Request, RequestKind, Response
from lmms_eval.api.task import Task
from lmms_eval.engine.stream import Stream
from lmms_eval.engine.team import Team, TeamError
from lmms_eval.errors import ModelError

REPEATED = "#repeated-"
"""In the id of a request that is asked only to keep step."""
AGAIN = ("internal", "out_of_memory")
"""Kinds of failure that one request can bring over its whole block."""
PATIENCE_S = 300.0
LONGEST_CALLS = 5
"""After a failure in this process's call the others have ``PATIENCE_S``, or so many times the longest call so far."""

STOPPED_PATIENCE_S = 2.0
"""Time that a process which was told to stop waits for the others: one of them may be the reason."""


@dataclass(frozen=True, slots=True)
class Group:
    """Requests that may be asked in one call."""

    task: str
    kind: RequestKind


@dataclass(frozen=True, slots=True)
class Sample:
    """Document whose first round gives another process a request of a group."""

    doc_id: int
    repeat: int


@dataclass(frozen=True, slots=True)
class Step:
    """Holdings of all processes at one agreement."""

    group: Group
    size: int
    """Requests that every process hands out."""
    sample: Sample


class Lockstep:
    """A ``RequestStream`` whose ``take`` hands out a block of the same size and task in every process.

    ``prepare`` renders a request that is asked in place of an own one. ``on_end`` is called when another process has
    stopped before everything was asked.
    """

    def __init__(
        self, stream: Stream, team: Team, tasks: Sequence[Task], prepare: Callable[[Request], Request],
        on_end: Callable[[], None],
    ) -> None:  # fmt: skip
        self._stream, self._team, self._prepare, self._on_end = stream, team, prepare, on_end
        self._tasks = {task.name: task for task in tasks}
        self._order = {name: number for number, name in enumerate(self._tasks)}
        self._held: list[Request] = []
        self._alone: list[Request] = []
        """Failed in a larger block: each is asked once more, in a block of one."""
        self._block: dict[str, Request] = {}
        self._last: dict[Group, Request] = {}
        self._steps = self._repeats = 0
        self._is_over = False
        self._stopped_at = 0.0
        self._patience = _Patience()

    def take(self, max_n: int) -> list[Request]:
        """The next block; empty in all processes at once.

        Raises:
            TeamError: another process has failed, or cannot keep step.
        """
        if self._is_over:
            return []
        if len(self._held) < max_n:
            self._held += self._stream.take_full(max_n - len(self._held)) or []
        step = self._agree(max_n, self._stream.is_stopped)
        if step is None:
            self._is_over = True
            return []
        waiting = self._alone if self._alone else self._held
        mine = [request for request in waiting if _group(request) == step.group][: step.size]
        self._block = {request.id: request for request in mine} if step.size > 1 else {}
        for request in mine:
            waiting.remove(request)
        if mine:
            self._last[step.group] = mine[-1]
        self._patience.begin()
        return [*mine, *(self._repeat(step) for _ in range(step.size - len(mine)))]

    def take_full(self, max_n: int) -> list[Request] | None:  # noqa: ARG002 - the contract's form
        """Nothing: what one process takes, all must take."""
        return []

    async def take_async(self, max_n: int) -> list[Request]:
        """``take`` without blocking the event loop."""
        return await asyncio.to_thread(self.take, max_n)

    def put_away(self, request: Request) -> None:
        self._stream.put_away(request)

    def keeps(self, response: Response) -> bool:
        """Tell whether the model's response is to be recorded; answers to repeated requests are not."""
        if response.error is not None:  # the others may wait in a collective that this process never came to
            self._patience.note_failure()
            if response.error.kind in AGAIN and (request := self._block.pop(response.request_id, None)) is not None:
                self._alone.append(request)
                return False
        return REPEATED not in response.request_id

    def leave(self) -> None:
        """The model has ended: the others must not wait for further blocks."""
        if self._is_over:
            return
        self._is_over = True
        with contextlib.suppress(RuntimeError, OSError):  # the host of the store is gone: nobody waits any more
            for step in (self._steps, self._steps + 1):  # what was told of this step may have been heard already
                self._team.publish(f"step/{step}/{self._team.place.rank}", {"is_stopped": True, "offers": []})

    def _agree(self, max_n: int, is_stopped: bool) -> Step | None:
        """Agree on the next step of all; ``None`` when nobody has anything, or somebody has stopped."""
        self._tell(self._offers(max_n), is_stopped)
        patience = self._patience.end()
        # One that has stopped leaves at once: no one begins a block without it.
        heard = [] if is_stopped else [self._hear(rank, patience) for rank in range(self._team.place.size)]
        self._steps += 1
        if is_stopped or any(told["is_stopped"] for told in heard):
            self._on_end()
            return None
        offers = [_offer(offer) for told in heard for offer in told["offers"]]
        if not offers:
            return None
        offers = [offer for offer in offers if offer.is_alone] or offers
        group = min((offer.group for offer in offers), key=lambda group: (self._order[group.task], group.kind))
        chosen = [offer for offer in offers if offer.group == group]
        return Step(group, max(offer.size for offer in chosen), chosen[0].sample)

    def _tell(self, offers: Mapping[Group, list[Request]], is_stopped: bool) -> None:
        rank = self._team.place.rank
        told = [
            {"task": group.task, "kind": group.kind, "size": len(held), "doc_id": held[0].doc_id,
             "repeat": held[0].repeat, "is_alone": bool(self._alone)}
            for group, held in offers.items()
        ]  # fmt: skip
        self._team.publish(f"step/{self._steps}/{rank}", {"is_stopped": is_stopped, "offers": told})
        if self._steps > 1:  # everybody has read it: nobody comes to this step before the last one
            self._team.delete(f"step/{self._steps - 2}/{rank}")

    def _hear(self, rank: int, patience_s: float | None) -> Any:
        try:
            limit = partial(self._limit, time.monotonic(), patience_s)
            return self._team.receive(f"step/{self._steps}/{rank}", rank, limit)
        except TeamError as error:
            if self._stream.is_stopped and not self._team.failure:
                return {"is_stopped": True}
            if patience_s is None or self._team.failure:
                raise
            raise TeamError(
                f"{error} after a call of the model had failed in this one: the collective operations of the two no "
                "longer line up; what was finished is kept, the same command goes on from there"
            ) from error

    def _limit(self, since: float, patience_s: float | None) -> float | None:
        """Seconds that this process waits for another one, ``since`` the monotonic clock showed so much."""
        if not self._stream.is_stopped:
            return patience_s
        self._stopped_at = self._stopped_at or time.monotonic()
        return self._stopped_at + STOPPED_PATIENCE_S - since

    def _offers(self, max_n: int) -> dict[Group, list[Request]]:
        offers: dict[Group, list[Request]] = {}
        for request in self._alone[:1] or self._held[:max_n]:
            offers.setdefault(_group(request), []).append(request)
        return offers

    def _repeat(self, step: Step) -> Request:
        self._repeats += 1
        request = self._last.get(step.group) or self._borrow(step)
        self._last[step.group] = request
        return replace(request, id=f"{request.id}{REPEATED}{self._repeats}")

    def _borrow(self, step: Step) -> Request:
        """A request like one that another process asks now."""
        task = self._tasks[step.group.task]
        for request in task.exchange(step.sample.doc_id, step.sample.repeat).open():
            if request.kind == step.group.kind:
                return self._prepare(request)
        raise ModelError(
            f"task {task.name!r} has no {step.group.kind} request in the first round of document "
            f"{step.sample.doc_id}, so a process without one of its own cannot keep step; set data_parallel = True on "
            "the model's class if its processes work independently"
        )


class _Patience:
    """Bound on waiting for the others: none, but after a failure here."""

    def __init__(self) -> None:
        self._begun: float | None = None
        self._longest = 0.0
        self._has_failed = False

    def begin(self) -> None:
        self._begun = time.monotonic()

    def note_failure(self) -> None:
        self._has_failed = True

    def end(self) -> float | None:
        """The call is over; seconds that the others have, ``None`` for as long as they live."""
        if self._begun is not None and not self._has_failed:
            self._longest = max(self._longest, time.monotonic() - self._begun)
        had_failed, self._has_failed = self._has_failed, False
        return max(PATIENCE_S, LONGEST_CALLS * self._longest) if had_failed else None


@dataclass(frozen=True, slots=True)
class _Offer:
    group: Group
    size: int
    sample: Sample
    is_alone: bool


def _offer(told: Mapping[str, Any]) -> _Offer:
    return _Offer(
        Group(told["task"], told["kind"]), told["size"], Sample(told["doc_id"], told["repeat"]), told["is_alone"]
    )


def _group(request: Request) -> Group:
    return Group(request.task.name, request.kind)
