"""The log of a job as server-sent events of the family's kinds: ``output``, then ``done``, ``stopped`` or ``error``.

A stream only reads: it starts nothing, and its end ends nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.concurrency import run_in_threadpool

from lmms_eval.server.job import State
from lmms_eval.ui.desk import Desk

EVERY_S = 0.5
_ALIVE_S = 15.0
_ENDS: dict[State, str] = {"completed": "done", "cancelled": "stopped", "failed": "error"}


async def stream(desk: Desk, job_id: str) -> AsyncIterator[bytes]:
    """Send the log of a job from its beginning, and at last how it has ended."""
    place, quiet_s = 0, 0.0
    while True:
        job = await run_in_threadpool(desk.service.job, job_id)
        if job is None:  # no longer in the list
            return
        while True:
            piece = await run_in_threadpool(desk.log, job_id, place)
            if piece["next"] == place:
                break
            place, quiet_s = piece["next"], 0.0
            yield _event("output", {"text": piece["text"]})
        if job.has_ended:
            yield _event(_ENDS[job.state], {"job_id": job_id})
            return
        quiet_s += EVERY_S
        if quiet_s > _ALIVE_S:
            quiet_s = 0.0
            yield b": still here\n\n"
        await asyncio.sleep(EVERY_S)


def _event(kind: str, data: dict[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()
