from __future__ import annotations

import asyncio
import threading
import time

import pytest

from lmms_eval.api.request import Request
from lmms_eval.engine.stream import Stream, StreamLimits
from lmms_eval.errors import DataError
from tests.engine.fakes import FakeTask


def requests(count: int) -> list[Request]:
    task = FakeTask(count)
    return [task.exchange(number, 0).open()[0] for number in range(count)]


def stream(items: list[Request], prepare=None, limits: StreamLimits | None = None, has_open=lambda: False) -> Stream:  # type: ignore[no-untyped-def]
    made = Stream(
        iter(items),
        prepare or (lambda r: r.with_payload("x", 10)),
        lambda r, e: None,
        has_open,
        limits or StreamLimits(),
    )
    made.start()
    return made


def drain(source: Stream, size: int = 7) -> list[int]:
    taken: list[int] = []
    while batch := source.take(size):
        assert len(batch) <= size
        taken += [request.doc_id for request in batch]
    return taken


def test_every_request_comes_once() -> None:
    assert sorted(drain(stream(requests(100)))) == list(range(100))


def test_one_thread_keeps_the_order() -> None:
    assert drain(stream(requests(50), limits=StreamLimits(threads=1))) == list(range(50))


def test_nothing_is_prepared_beyond_the_budget() -> None:
    prepared: list[int] = []
    lock = threading.Lock()

    def prepare(request: Request) -> Request:
        with lock:
            prepared.append(request.doc_id)
        return request.with_payload(b"", 1000)

    source = stream(requests(100), prepare, StreamLimits(max_bytes=5000, threads=3))
    time.sleep(0.3)
    assert 1 <= len(prepared) <= 6
    assert sorted(drain(source)) == list(range(100))
    assert source.peak_bytes <= 5000


def test_a_request_larger_than_the_budget_is_prepared_alone() -> None:
    source = stream(requests(5), lambda r: r.with_payload(b"", 10**9), StreamLimits(max_bytes=1000, threads=2))
    assert sorted(drain(source, 1)) == list(range(5))


def test_later_rounds_come_before_new_documents() -> None:
    items = requests(20)
    source = stream(items[:10], limits=StreamLimits(threads=1, max_requests=1))
    source.take(1)
    source.push(items[15:16])
    taken = drain(source, 1)
    assert 15 in taken[:3]
    assert len(taken) == 10


def test_take_waits_while_answers_may_bring_more() -> None:
    open_requests = [True]
    source = stream([], has_open=lambda: open_requests[0])
    got: list[list[Request]] = []
    taker = threading.Thread(target=lambda: got.append(source.take(1)))
    taker.start()
    taker.join(0.2)
    assert taker.is_alive()
    open_requests[0] = False
    source.wake()
    taker.join(2)
    assert got == [[]]


def test_failed_preparation_is_reported_and_the_rest_goes_on() -> None:
    failures: list[tuple[int, str]] = []

    def prepare(request: Request) -> Request:
        if request.doc_id == 3:
            raise OSError("broken picture")
        return request.with_payload(None, 1)

    source = Stream(
        iter(requests(10)), prepare, lambda r, e: failures.append((r.doc_id, str(e))), lambda: False, StreamLimits()
    )
    source.start()
    assert sorted(drain(source)) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert failures == [(3, "broken picture")]


def test_unusable_data_ends_the_stream_for_all() -> None:
    def prepare(request: Request) -> Request:
        raise DataError("data.zip is missing")

    source = stream(requests(10), prepare)
    with pytest.raises(DataError, match=r"data\.zip is missing"):
        drain(source)


def test_stop_ends_at_once() -> None:
    source = stream(requests(1000))
    assert source.take(1)
    source.stop()
    assert source.take(5) == []
    source.close()


def test_taking_what_is_ready_never_waits() -> None:
    gate = threading.Event()

    def prepare(request: Request) -> Request:
        if request.doc_id:
            gate.wait(5)
        return request.with_payload("x", 10)

    source = stream(requests(3), prepare, StreamLimits(threads=1), has_open=lambda: True)
    assert [request.doc_id for request in source.take(5)] == [0]
    assert source.take_ready(5) == [], "others are still being prepared"
    gate.set()
    found: list[int] = []
    while len(found) < 2:
        found += [request.doc_id for request in source.take_ready(1) or []]
        time.sleep(0.01)
    assert found == [1, 2] and source.taken == 3
    assert source.take_ready(5) == [], "answers that may bring more are outstanding: take would wait here"
    source.stop()
    assert source.take_ready(5) is None
    source.close()


def test_taking_what_is_ready_raises_what_ended_the_stream() -> None:
    def prepare(request: Request) -> Request:
        raise DataError("no folder")

    source = stream(requests(3), prepare)
    with pytest.raises(DataError, match="no folder"):
        source.take(1)
    with pytest.raises(DataError, match="no folder"):
        source.take_ready(1)


def test_asynchronous_takers_get_everything() -> None:
    async def collect() -> list[int]:
        def slow(request: Request) -> Request:
            time.sleep(0.001)
            return request

        source = stream(requests(60), slow)
        taken: list[int] = []

        async def worker() -> None:
            while batch := await source.take_async(2):
                taken.extend(request.doc_id for request in batch)
                await asyncio.sleep(0)

        await asyncio.gather(*(worker() for _ in range(5)))
        return taken

    assert sorted(asyncio.run(asyncio.wait_for(collect(), 20))) == list(range(60))


def test_waking_after_the_loop_of_a_taker_was_closed_does_no_harm() -> None:
    source = Stream(iter([]), lambda r: r, lambda r, e: None, lambda: True, StreamLimits())

    async def leave() -> None:
        waiting = asyncio.ensure_future(source.take_async(1))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        left.extend(source._waiters)
        waiting.cancel()

    left: list[object] = []
    asyncio.run(leave())
    source._waiters.update(left)  # type: ignore[arg-type]
    source.wake()
    assert not source._waiters
