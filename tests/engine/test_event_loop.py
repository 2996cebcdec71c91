from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from lmms_eval.engine import signals
from lmms_eval.engine.signals import EndNow, run_coroutine


def test_the_result_of_the_coroutine() -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    assert run_coroutine(work()) == 7


def test_uvloop_s_loop_is_taken_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[asyncio.AbstractEventLoop] = []

    def new_event_loop() -> asyncio.AbstractEventLoop:
        made.append(asyncio.new_event_loop())
        return made[0]

    async def work() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    monkeypatch.setitem(sys.modules, "uvloop", SimpleNamespace(new_event_loop=new_event_loop))
    assert run_coroutine(work()) is made[0] and made[0].is_closed()
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert run_coroutine(work()) is not made[0]


def test_an_exception_goes_up_and_other_tasks_are_cancelled() -> None:
    ended: list[str] = []

    async def other() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("other")

    async def work() -> None:
        task = asyncio.create_task(other())
        await asyncio.sleep(0)
        assert not task.done()
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        run_coroutine(work())
    assert ended == ["other"]


def test_a_task_that_never_ends_is_not_waited_for_after_the_end_was_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "INTERRUPTED_S", 0.05)

    async def deaf() -> None:
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)

    tasks: list[Any] = []

    async def work() -> None:
        tasks.append(asyncio.create_task(deaf()))
        await asyncio.sleep(0)
        raise EndNow("now")

    begin = time.monotonic()
    with pytest.raises(EndNow, match="now"):
        run_coroutine(work())
    assert time.monotonic() - begin < 20
    assert not tasks[0].done()
    tasks[0].get_coro().close()
