"""One time limit for many waits."""

from __future__ import annotations

import asyncio
import time

import pytest

from lmms_eval.models.remote.bounds import TimeLimit


async def _answer(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return seconds


def test_each_wait_has_its_own_deadline() -> None:
    async def late(limit: TimeLimit, start: float, length: float) -> tuple[float, bool]:
        await asyncio.sleep(start)
        began = time.monotonic()
        try:
            await limit.wait_for(_answer(length))
        except TimeoutError:
            return time.monotonic() - began, True
        return time.monotonic() - began, False

    async def run() -> list[tuple[float, bool]]:
        limit = TimeLimit(0.2)
        waits = [(0.0, 0.01), (0.0, 9.0), (0.1, 9.0), (0.3, 0.01), (0.5, 9.0)]
        return await asyncio.gather(*(late(limit, *wait) for wait in waits))

    found = asyncio.run(run())
    assert [is_late for _, is_late in found] == [False, True, True, False, True]
    assert all(seconds >= 0.19 for seconds, is_late in found if is_late)
    assert all(seconds < 5.0 for seconds, _ in found)


def test_cancelling_from_outside_is_no_timeout() -> None:
    async def run() -> None:
        task = asyncio.create_task(TimeLimit(5.0).wait_for(_answer(9.0)))
        await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())


def test_cancelled_by_both_is_cancelled() -> None:
    async def run() -> None:
        task = asyncio.create_task(TimeLimit(0.05).wait_for(_answer(9.0)))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.05, task.cancel)
        time.sleep(0.1)  # both come due in one step of the loop
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())


def test_errors_and_later_waits_of_the_same_task_pass() -> None:
    async def fails() -> None:
        raise ConnectionError("broken")

    async def run() -> float:
        limit = TimeLimit(0.05)
        with pytest.raises(ConnectionError):
            await limit.wait_for(fails())
        with pytest.raises(TimeoutError):
            await limit.wait_for(_answer(9.0))
        return await limit.wait_for(_answer(0.01))

    assert asyncio.run(run()) == 0.01
