from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from lmms_eval.utils.concurrency import closed_on_error

ended: list[str] = []


@asynccontextmanager
async def connection() -> AsyncIterator[None]:
    try:
        yield
    finally:
        await asyncio.sleep(0.001)
        ended.append("connection")


async def numbers() -> AsyncIterator[int]:
    async with connection():
        for number in range(3):
            yield number
        ended.append("all")


async def take(broken: type[BaseException] | None) -> None:
    ended.clear()
    items = numbers()
    async with closed_on_error(items):
        async for number in items:
            if broken is not None and number == 1:
                raise broken("full")
    assert ended == ["all", "connection"]


def test_an_exception_closes_the_generator_and_what_it_uses(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(take(None))
    with pytest.raises(OSError, match="full"):
        asyncio.run(take(OSError))
    assert ended == ["connection"]
    assert capsys.readouterr().err == ""


def test_an_interrupt_waits_for_nothing() -> None:
    async def interrupted() -> None:
        try:
            await take(KeyboardInterrupt)
        finally:
            assert ended == []

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(interrupted())


def test_what_cannot_be_closed_is_left() -> None:
    class Plain:
        def __aiter__(self) -> Plain:
            return self

        async def __anext__(self) -> int:
            raise ValueError("broken")

    async def run() -> None:
        items = Plain()
        async with closed_on_error(items):
            async for _ in items:
                pass

    with pytest.raises(ValueError, match="broken"):
        asyncio.run(run())
