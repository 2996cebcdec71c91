"""Conversations with an evaluation server, without any sending or waiting: both clients carry them out."""

from __future__ import annotations

import random
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import uuid4

import orjson
from loguru import logger

from lmms_eval.errors import EvaluationServerError, JobFailedError, JobTimeoutError
from lmms_eval.utils.terminal import printable

_T = TypeVar("_T")
IDEMPOTENCY_HEADER = "idempotency-key"
"""A server that has seen the key answers with the job that it stands for, and starts no second one."""
_TRY_AGAIN = frozenset({429, 502, 503, 504})
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 8.0

Job = dict[str, Any]
"""A job as the server tells it: ``job_id, status, created_at, started_at, completed_at, request, result, error,
position_in_queue``."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request.

    Args:
        body: sent as JSON; entries of ``None`` are left out.
    """

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes | None:
        if self.body is None:
            return None
        return orjson.dumps({name: value for name, value in self.body.items() if value is not None})


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer to a call, or the reason why there is none.

    Args:
        status: code of the answer; 0 if there is none, as the server cannot be reached.
        content: the answer, or why there is none.
        retry_after: seconds that the server asks to wait.
    """

    status: int
    content: bytes
    retry_after: float | None = None


Talk = Generator[Call | float, Reply | None, _T]
"""A conversation: it yields calls, to each of which it is sent the reply, and pauses in seconds."""


@dataclass(slots=True)
class Patience:
    """Pauses between the tries of one call, with jitter, for so many seconds after the first one that was lost."""

    seconds: float
    _pause: float = _FIRST_PAUSE_S
    _end: float | None = None

    def pause(self, asked: float | None = None) -> float | None:
        """Return the seconds to wait before the next try, ``None`` if there is no time for one.

        Args:
            asked: what the server asks for at least.
        """
        if self._end is None:
            self._end = time.monotonic() + self.seconds
        wait = max(self._pause * random.uniform(0.5, 1.0), asked or 0.0)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE_S)
        return wait if time.monotonic() + wait < self._end else None


def evaluation(
    model: str, tasks: Sequence[str], options: Mapping[str, Any], idempotency_key: str | None = None
) -> Call:
    """Submit an evaluation; the same key submits it once, however often the call is sent."""
    body = {"model": model, "tasks": list(tasks), **options}
    return Call("POST", "/evaluate", body, headers={IDEMPOTENCY_HEADER: idempotency_key or str(uuid4())})


def job(job_id: str, what: str = "") -> Call:
    """Ask for a job, or for a part of what is known of it."""
    return Call("GET", f"/jobs/{quote(job_id, safe='')}{what}")


def cancellation(job_id: str) -> Call:
    return Call("DELETE", f"/jobs/{quote(job_id, safe='')}")


def samples(job_id: str, task: str | None, offset: int, limit: int, where: str | None) -> Call:
    query = {"task": task, "offset": str(offset), "limit": str(limit), "where": where}
    told = {name: value for name, value in query.items() if value is not None}
    return Call("GET", f"/jobs/{quote(job_id, safe='')}/samples", query=told)


def merging(checkpoint_path: str, output_path: str | None, checkpoint_type: str) -> Call:
    body = {"checkpoint_path": checkpoint_path, "output_path": output_path, "checkpoint_type": checkpoint_type}
    return Call("POST", "/merge", body)


def asked(call: Call, patience: float) -> Talk[dict[str, Any]]:
    """Make a call, again while the server cannot be reached or is busy, for so many seconds at most.

    Raises:
        EvaluationServerError: it has refused, cannot be reached, or what came is no JSON.
    """
    waiting = Patience(patience)
    while True:
        reply = yield call
        assert reply is not None
        if 0 < reply.status < 400:
            return _content(call, reply)
        yield pause_before(call, reply, waiting)


def pause_before(call: Call, reply: Reply, waiting: Patience) -> float:
    """Return the seconds to wait before a call is tried again.

    Raises:
        EvaluationServerError: it was refused, or patience is at its end.
    """
    pause = waiting.pause(reply.retry_after) if not reply.status or reply.status in _TRY_AGAIN else None
    if pause is not None:
        return pause
    if not reply.status:
        raise EvaluationServerError(f"{call.method} {call.path}: no answer: {reply.content.decode()}")
    try:
        value = orjson.loads(reply.content)
    except orjson.JSONDecodeError:
        value = None
    text = f"{call.method} {call.path}: {printable(_reason(value, reply.content))} (status {reply.status})"
    raise EvaluationServerError(text, reply.status)


def awaited(job_id: str, patience: float, poll_interval: float, timeout: float | None, verbose: bool) -> Talk[Job]:
    """Look for a job until it is completed.

    Raises:
        JobFailedError: it failed or was cancelled.
        JobTimeoutError: it goes on after that time.
    """
    begin, seen = time.monotonic(), None
    while not _has_ended(found := (yield from asked(job(job_id), patience))):
        state = (printable(str(found.get("status"))), found.get("position_in_queue"))
        if verbose and state != seen:
            logger.info(f"job {job_id}: {state[0]}" + (f", {state[1]} before it" if state[0] == "queued" else ""))
        seen = state
        pause = poll_interval
        if timeout is not None:
            pause = min(pause, begin + timeout - time.monotonic())
            if pause <= 0:
                goes_on = f"job {job_id} is {state[0]} after {timeout:g} s; it goes on: wait again, or cancel it"
                raise JobTimeoutError(goes_on)
        yield pause
    return found


def _content(call: Call, reply: Reply) -> dict[str, Any]:
    try:
        value = orjson.loads(reply.content)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        text = f"{call.method} {call.path}: the answer is no JSON object; is this the address of an evaluation server?"
        raise EvaluationServerError(text, reply.status)
    return value


def _reason(value: Any, content: bytes) -> str:
    """Read a refusal: a text, or the fields of the request that are wrong."""
    detail = value.get("detail") if isinstance(value, dict) else None
    if isinstance(detail, str):
        return detail
    if isinstance(detail, list):
        return "; ".join(_wrong_field(one) for one in detail)
    return content[:300].decode("utf-8", "replace").strip() or "no reason given"


def _wrong_field(one: Any) -> str:
    if not isinstance(one, dict):
        return str(one)
    place = ".".join(str(part) for part in one.get("loc", ()) if part != "body")
    return f"{place}: {one.get('msg')}" if place else str(one.get("msg"))


def _has_ended(found: Job) -> bool:
    """Tell whether a job is completed. Raises ``JobFailedError`` if it has ended in another way."""
    status = found.get("status")
    if status == "failed":
        raise JobFailedError(printable(f"job {found.get('job_id')} failed: {found.get('error')}"))
    if status == "cancelled":
        raise JobFailedError(printable(f"job {found.get('job_id')} was cancelled"))
    return status == "completed"
