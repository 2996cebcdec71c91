"""Blocks of equal size in all processes of a launch, for models whose forward passes need all processes.

Documents are dealt out in turn. Before each block every process publishes through the launch's store which requests it
holds. All processes then take requests of one task, as many as the process with the most of them holds. A process with
fewer repeats its last request, or asks one that another process holds, and discards the extra answers. Requests of a
failed block are asked again one at a time, also in lockstep.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.api.request import Request, RequestKind, Response
from lmms_eval.api.task import Task
from lmms_eval.engine.stream import Stream
from lmms_eval.engine.team import Team, TeamError
from lmms_eval.errors import ModelError

REPEATED = "#repeated-"
"""Part of the id of a request that is only repeated to fill a block."""
AGAIN = ("internal", "out_of_memory")
"""Kinds of errors that a single request can cause for its whole block."""
PATIENCE_S = 300.0
LONGEST_CALLS = 5
"""After a failed call in this process the others have ``PATIENCE_S``, or this many times the longest call so far."""
STOPPED_PATIENCE_S = 2.0
"""Time that a stopped process waits for the others: one of them may be the reason for the stop."""

Group = tuple[str, RequestKind]
"""Task and kind of requests that may be in one block."""


class BlockStep(Struct, frozen=True):
    """The next block, as agreed by all processes."""

    group: Group
    size: int
    """Number of requests in every process."""
    doc_id: int
    """Document whose first round has a request of the group, for a process that has none."""
    repeat: int


class Lockstep:
    """A ``RequestStream`` whose ``take`` returns a block of the same size and task in every process.

    ``prepare`` prepares a request that another process holds. ``on_end`` is called if another process stopped before
    everything was asked.
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
        """Requests that failed in a larger block: each is asked once more, in a block of one."""
        self._block: dict[str, Request] = {}
        self._last: dict[Group, Request] = {}
        self._steps = self._repeats = 0
        self._is_over = False
        self._stopped_at = 0.0
        self._patience = _Patience()

    def take(self, max_n: int) -> list[Request]:
        """Return the next block; it is empty in all processes at the same time.

        Raises:
            TeamError: another process failed, or cannot take part.
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
        """Return nothing: all processes must take blocks at the same time."""
        return []

    async def take_async(self, max_n: int) -> list[Request]:
        """``take`` without blocking the event loop."""
        return await asyncio.to_thread(self.take, max_n)

    def put_away(self, request: Request) -> None:
        self._stream.put_away(request)

    def keeps(self, response: Response) -> bool:
        """Return whether a response of the model is recorded; answers to repeated requests are not."""
        if response.error is not None:  # the others may wait in a collective that this process never entered
            self._patience.note_failure()
            if response.error.kind in AGAIN and (request := self._block.pop(response.request_id, None)) is not None:
                self._alone.append(request)
                return False
        return REPEATED not in response.request_id

    def leave(self) -> None:
        """Announce that the model has ended, so that the others do not wait for further blocks."""
        if self._is_over:
            return
        self._is_over = True
        with contextlib.suppress(RuntimeError, OSError):  # the host of the store is gone: nobody waits any more
            for step in (self._steps, self._steps + 1):  # the others may have received this step already
                self._team.publish(f"step/{step}/{self._team.place.rank}", {"is_stopped": True, "offers": []})

    def _agree(self, max_n: int, is_stopped: bool) -> BlockStep | None:
        """Agree on the next block; ``None`` if no process has a request left, or one has stopped."""
        self._publish(max_n, is_stopped)
        patience = self._patience.end()
        # A stopped process leaves at once: no other process begins a block without it.
        received = [] if is_stopped else [self._receive(rank, patience) for rank in range(self._team.place.size)]
        self._steps += 1
        if is_stopped or any(message["is_stopped"] for message in received):
            self._on_end()
            return None
        offers = [offer for message in received for offer in message["offers"]]
        if not offers:
            return None
        offers = [offer for offer in offers if offer["is_alone"]] or offers
        task, kind = min(
            ((offer["task"], offer["kind"]) for offer in offers), key=lambda group: (self._order[group[0]], group[1])
        )
        chosen = [offer for offer in offers if (offer["task"], offer["kind"]) == (task, kind)]
        size = max(offer["size"] for offer in chosen)
        return BlockStep((task, kind), size, chosen[0]["doc_id"], chosen[0]["repeat"])

    def _publish(self, max_n: int, is_stopped: bool) -> None:
        """Publish for each group how many requests this process holds, and the first one's document."""
        held: dict[Group, list[Request]] = {}
        for request in self._alone[:1] or self._held[:max_n]:
            held.setdefault(_group(request), []).append(request)
        offers = [
            {"task": task, "kind": kind, "size": len(requests), "doc_id": requests[0].doc_id,
             "repeat": requests[0].repeat, "is_alone": bool(self._alone)}
            for (task, kind), requests in held.items()
        ]  # fmt: skip
        rank = self._team.place.rank
        self._team.publish(f"step/{self._steps}/{rank}", {"is_stopped": is_stopped, "offers": offers})
        if self._steps > 1:  # every process has read it, since all have completed the step after it
            self._team.delete(f"step/{self._steps - 2}/{rank}")

    def _receive(self, rank: int, patience_s: float | None) -> Any:
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
                "longer line up; finished answers are kept: start the same command again to continue"
            ) from error

    def _limit(self, since: float, patience_s: float | None) -> float | None:
        """Return the seconds that this process waits for another one, counted from the time ``since``."""
        if not self._stream.is_stopped:
            return patience_s
        self._stopped_at = self._stopped_at or time.monotonic()
        return self._stopped_at + STOPPED_PATIENCE_S - since

    def _repeat(self, step: BlockStep) -> Request:
        self._repeats += 1
        request = self._last.get(step.group) or self._borrow(step)
        self._last[step.group] = request
        return replace(request, id=f"{request.id}{REPEATED}{self._repeats}")

    def _borrow(self, step: BlockStep) -> Request:
        """Return a request that another process asks in this block."""
        name, kind = step.group
        for request in self._tasks[name].exchange(step.doc_id, step.repeat).open():
            if request.kind == kind:
                return self._prepare(request)
        raise ModelError(
            f"task {name!r} has no {kind} request in the first round of document {step.doc_id}, so a process without "
            "one of its own cannot keep step; set data_parallel = True on the model's class if its processes work "
            "independently"
        )


class _Patience:
    """Limit of waiting for the other processes, which applies only after a failure in this one."""

    def __init__(self) -> None:
        self._begun: float | None = None
        self._longest = 0.0
        self._has_failed = False

    def begin(self) -> None:
        self._begun = time.monotonic()

    def note_failure(self) -> None:
        self._has_failed = True

    def end(self) -> float | None:
        """Note the end of a call; returns the seconds to wait for the others, ``None`` for no limit."""
        if self._begun is not None and not self._has_failed:
            self._longest = max(self._longest, time.monotonic() - self._begun)
        had_failed, self._has_failed = self._has_failed, False
        return max(PATIENCE_S, LONGEST_CALLS * self._longest) if had_failed else None


def _group(request: Request) -> Group:
    return request.task.name, request.kind
