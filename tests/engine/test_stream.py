from __future__ import annotations

import asyncio
import random
import threading
import time
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from lmms_eval.api.request import Request
from lmms_eval.engine import stage
from lmms_eval.engine.stream import Stream, StreamLimits
from lmms_eval.errors import DataError
from tests.cases import for_each
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
    """Take and answer everything."""
    taken: list[int] = []
    while batch := source.take(size):
        assert len(batch) <= size
        taken += [request.doc_id for request in batch]
        for request in batch:
            source.answered(request.id)
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


class Alive:
    """Payloads in memory, counted when they are created and freed."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes, self.lock = sizes, threading.Lock()
        self.now = self.most = self.most_bytes = 0
        self._bytes = 0

    def prepare(self, request: Request) -> Request:
        size = self.sizes[request.doc_id]
        self._change(1, size)  # from the first picture on
        time.sleep(0.002)
        payload = threading.Event()  # any object that can be watched
        weakref.finalize(payload, self._change, -1, -size)
        return request.with_payload(payload, size)

    def _change(self, count: int, size: int) -> None:
        with self.lock:
            self.now, self._bytes = self.now + count, self._bytes + size
            self.most, self.most_bytes = max(self.most, self.now), max(self.most_bytes, self._bytes)


def test_a_request_larger_than_the_budget_is_prepared_alone() -> None:
    alive = Alive([10**9] * 8)
    source = stream(requests(8), alive.prepare, StreamLimits(max_bytes=1000, threads=3))
    assert sorted(drain(source, 1)) == list(range(8))
    assert alive.most == 1 and source.peak_bytes == 10**9


def test_what_the_model_holds_counts_until_it_has_answered() -> None:
    alive = Alive([100] * 30)
    source = stream(requests(30), alive.prepare, StreamLimits(max_bytes=450, threads=3))
    held = source.take(1) + source.take(1)
    time.sleep(0.2)
    assert alive.now == 4, "two with the model, two ready: 50 bytes are too few for another"
    for request in held:
        source.answered(request.id)
        assert request.payload is None, "no variable of the model keeps it in memory"
    assert sorted([request.doc_id for request in held] + drain(source, 1)) == list(range(30))
    assert alive.most_bytes <= 450 and source.peak_bytes <= 400


def test_what_the_model_puts_away_counts_no_longer() -> None:
    """A model that writes requests to a file takes them all before it answers one."""
    alive = Alive([100] * 30)
    source = stream(requests(30), alive.prepare, StreamLimits(max_bytes=250, threads=1))
    held: list[Request] = []
    while taken := source.take_full(1):
        for request in taken:
            source.put_away(request)
            assert request.payload is None
        held += taken
    assert len(held) == 30 and source.peak_bytes <= 250
    for request in held:
        source.answered(request.id)
    assert source.take(1) == []
    assert source._held_bytes == source._ready_bytes == 0


def test_payloads_that_are_asked_again_stay() -> None:
    source = stream(requests(2))
    (request,) = source.take(1)
    source.answered(request.id, frees=False)
    assert request.payload == "x"
    source.answered(request.id)
    assert request.payload == "x" and drain(source) == [1], "answered twice changes nothing"


def test_a_model_that_takes_before_it_answers_is_never_starved() -> None:
    source = stream(requests(6), lambda r: r.with_payload(b"", 700), StreamLimits(max_bytes=1000, threads=2))
    held = [request for _ in range(6) for request in source.take(1)]
    assert [request.doc_id for request in held] == list(range(6))
    for request in held:
        source.answered(request.id)
    assert source.take(1) == []


def test_waiting_coroutines_get_no_more_than_the_budget_holds() -> None:
    alive = Alive([600] * 12)
    most_open = [0]

    async def run() -> list[int]:
        source = stream(requests(12), alive.prepare, StreamLimits(max_bytes=1300, threads=2))
        done: list[int] = []
        is_open = 0

        async def worker() -> None:
            nonlocal is_open
            while batch := await source.take_async(1):
                is_open += 1
                most_open[0] = max(most_open[0], is_open)
                await asyncio.sleep(0.01)
                is_open -= 1
                done.append(batch[0].doc_id)
                source.answered(batch[0].id)

        await asyncio.gather(*(worker() for _ in range(8)))
        return done

    assert sorted(asyncio.run(asyncio.wait_for(run(), 20))) == list(range(12))
    assert alive.most == 2 and most_open[0] <= 2


def test_the_first_request_of_a_task_is_prepared_alone() -> None:
    """Its size is unknown: several at once could exceed the budget several times."""
    task, other = FakeTask(3, "small"), FakeTask(3, "large")
    items = [made.exchange(number, 0).open()[0] for made in (task, other) for number in range(3)]
    running: list[str] = []
    beside: dict[str, list[str]] = {}
    lock = threading.Lock()

    def prepare(request: Request) -> Request:
        with lock:
            running.append(request.id)
        time.sleep(0.05)
        with lock:
            beside[request.id] = list(running)
            running.remove(request.id)
        return request.with_payload(b"", 10 if request.task is task else 900)

    source = stream(items, prepare, StreamLimits(max_bytes=2000, threads=3))
    assert len(drain(source, 1)) == 6
    assert beside["small/0/0/0/0"] == ["small/0/0/0/0"]
    assert not {"large/1/0/0/0", "large/2/0/0/0"}.intersection(beside["large/0/0/0/0"])


def test_a_rising_cost_is_expected_to_be_as_large_as_the_largest_before() -> None:
    """Costs fall within a window, so small requests at its end do not predict the first one of the next."""
    sizes = [900, *[10] * 40, 900, 890, 880]
    costs = [50.0, *[1.0] * 40, 50.0, 49.0, 48.0]
    items = [replace(request, cost=costs[request.doc_id]) for request in requests(len(sizes))]
    alive = Alive(sizes)
    assert len(drain(stream(items, alive.prepare, StreamLimits(max_bytes=1500, threads=3)), 1)) == len(sizes)
    assert alive.most_bytes <= 1500


def test_later_rounds_come_before_new_documents() -> None:
    items = requests(20)
    source = stream(items[:10], limits=StreamLimits(threads=1, max_requests=1))
    source.take(1)
    source.push(items[15:16])
    taken = drain(source, 1)
    assert 15 in taken[:3]
    assert len(taken) == 10


def prepared_within(prepared: list[int], count: int) -> bool:
    """Return whether this many are prepared soon, and no more."""
    deadline = time.monotonic() + 5
    while len(prepared) < count and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    return len(prepared) == count


def noting(prepared: list[int]):  # type: ignore[no-untyped-def]
    def prepare(request: Request) -> Request:
        prepared.append(request.doc_id)
        return request.with_payload(b"", 1)

    return prepare


def test_preparation_goes_on_when_a_quarter_of_what_is_ready_was_taken() -> None:
    prepared: list[int] = []
    source = stream(requests(40), noting(prepared), StreamLimits(threads=2, max_requests=8))
    assert prepared_within(prepared, 8)
    source.take(1)
    assert prepared_within(prepared, 8)
    source.take(1)
    assert prepared_within(prepared, 10)
    assert len(drain(source)) == 38


def test_later_rounds_are_prepared_as_soon_as_there_is_a_place() -> None:
    prepared: list[int] = []
    items = requests(40)
    source = stream(items[:30], noting(prepared), StreamLimits(threads=1, max_requests=8))
    assert prepared_within(prepared, 8)
    (first,) = source.take(1)
    source.answered(first.id, items[35:36])
    assert prepared_within(prepared, 9)
    assert prepared[-1] == 35
    source.stop()


def test_a_block_of_more_than_is_ready_is_filled_up() -> None:
    prepared: list[int] = []
    source = stream(requests(40), noting(prepared), StreamLimits(threads=1, max_requests=8))
    assert prepared_within(prepared, 8)
    source.take(1)  # seven are left, which is enough to wait with
    assert len(source.take_full(8) or ()) == 8
    source.stop()


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


def test_a_full_block_waits_for_no_answers() -> None:
    source = stream(requests(3), has_open=lambda: True)
    assert [request.doc_id for request in source.take_full(5) or []] == [0, 1, 2]
    assert source.take_full(5) == [], "answers that may bring more are outstanding: take would wait here"
    source.stop()
    assert source.take_full(5) is None
    source.close()


def test_full_blocks_hold_the_next_requests_whichever_was_prepared_first() -> None:
    delays = random.Random(0)

    def slow(request: Request) -> Request:
        time.sleep(delays.random() * 0.004)
        return request.with_payload("x", 10)

    for _ in range(10):
        source = stream(requests(14), slow, StreamLimits(threads=4))
        blocks = [[request.doc_id for request in source.take_full(4) or []] for _ in range(5)]
        assert blocks == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13], []]
        source.close()


def test_a_full_block_raises_what_ended_the_stream() -> None:
    def prepare(request: Request) -> Request:
        raise DataError("no folder")

    source = stream(requests(3), prepare)
    with pytest.raises(DataError, match="no folder"):
        source.take(1)
    with pytest.raises(DataError, match="no folder"):
        source.take_full(1)


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


def test_a_full_block_waits_for_preparation_only() -> None:
    def slow(request: Request) -> Request:
        time.sleep(0.01)
        return request.with_payload("x", 10)

    source = stream(requests(10), slow, has_open=lambda: True)
    assert [len(source.take_full(4) or []) for _ in range(3)] == [4, 4, 2]
    assert source.take_full(4) == []
    source.push(requests(1))
    assert len(source.take_full(4) or []) == 1
    source.stop()
    assert source.is_stopped
    assert source.take_full(4) is None


def test_a_full_block_is_what_the_budget_has_room_for() -> None:
    source = stream(requests(10), lambda r: r.with_payload("x", 1000), StreamLimits(max_bytes=2500, threads=1))
    assert 1 <= len(source.take_full(8) or []) <= 3


@for_each(("takes_s", "threads"), [(0.0, 1), (0.03, 3)])
def test_threads_come_to_help_where_preparing_takes_its_time(takes_s: float, threads: int) -> None:
    names: set[str] = set()

    def prepare(request: Request) -> Request:
        names.add(threading.current_thread().name)
        time.sleep(takes_s)
        return request.with_payload(b"", 1)

    assert len(drain(stream(requests(40), prepare, StreamLimits(threads=3)))) == 40
    assert len(names) == threads


@for_each("computes_s, threads", [(0.15, 1), (0.0, 3)])
def test_no_thread_helps_a_model_that_has_its_next_batch_in_time(computes_s: float, threads: int) -> None:
    names: set[str] = set()

    def prepare(request: Request) -> Request:
        names.add(threading.current_thread().name)
        time.sleep(0.012)
        return request.with_payload(b"", 1)

    source, taken = stream(requests(36), prepare, StreamLimits(threads=3)), list[Request]()
    taken += source.take_full(12) or []  # the first batches have to be waited for
    for _ in range(6):
        time.sleep(computes_s)
        for request in taken[:4]:
            source.answered(request.id)
        taken = taken[4:] + (source.take_full(4) or [])
    assert len(taken) == 12 and len(names) == threads


def test_none_are_taken_where_none_are_asked_for() -> None:
    source = stream(requests(2))
    assert source.take_full(0) == []  # whatever is ready by now
    assert sorted(drain(source)) == [0, 1]
    assert source.take_full(0) == []


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes half a second is slow: a busy machine may stop a test for shorter times."""
    monkeypatch.setattr(stage, "QUICK_S", 0.4)
    monkeypatch.setattr(stage, "BLOCKED_S", 0.5)


def taken_by_a_loop(source: Stream, size: int = 8) -> list[int]:
    """Take everything in an event loop, which answers a moment later."""
    taken: list[int] = []

    async def main() -> None:
        while batch := await source.take_async(size):
            taken.extend(request.doc_id for request in batch)
            await asyncio.sleep(0.001)
            for request in batch:
                source.answered(request.id)

    asyncio.run(main())
    return taken


@pytest.mark.usefixtures("patient")
def test_an_event_loop_prepares_what_is_quick_itself() -> None:
    names: list[str] = []

    def prepare(request: Request) -> Request:
        names.append(threading.current_thread().name)
        if request.doc_id == 190:  # a task's functions may run a loop of their own
            asyncio.run(asyncio.sleep(0))
        return request.with_payload("x", 10)

    source = stream(requests(200), prepare, StreamLimits(max_requests=32))
    assert taken_by_a_loop(source) == list(range(200))
    source.close()
    assert names[0] == "prepare-0" and names[-1] == threading.current_thread().name


@pytest.mark.usefixtures("patient")
def test_threads_prepare_again_when_the_event_loop_was_blocked() -> None:
    names: list[str] = []

    def prepare(request: Request) -> Request:
        names.append(threading.current_thread().name)
        if request.doc_id >= 100:
            time.sleep(0.6 if request.doc_id == 100 else 0.002)
        return request.with_payload("x", 10)

    source = stream(requests(150), prepare, StreamLimits(max_requests=32))
    assert sorted(taken_by_a_loop(source)) == list(range(150))
    source.close()
    here = threading.current_thread().name
    assert names[99] == here and here not in names[104:]


def test_an_event_loop_goes_on_after_many_requests_that_are_answered_already() -> None:
    def prepare(request: Request) -> Request | None:
        return request.with_payload("x", 10) if request.doc_id % 100 < 30 else None

    source = stream(requests(500), prepare, StreamLimits(max_requests=32))
    assert taken_by_a_loop(source) == [number for number in range(500) if number % 100 < 30]
    source.close()


def test_what_ends_the_preparation_in_an_event_loop_ends_the_stream() -> None:
    def prepare(request: Request) -> Request:
        if request.doc_id == 90:
            raise DataError("the files are gone")
        return request.with_payload("x", 10)

    source = stream(requests(200), prepare, StreamLimits(max_requests=32))
    with pytest.raises(DataError, match="the files are gone"):
        taken_by_a_loop(source)
    with pytest.raises(DataError, match="the files are gone"):
        source.take(1)
    source.close()


def test_threads_prepare_for_a_model_that_takes_in_a_thread_after_an_event_loop() -> None:
    source = stream(requests(200), limits=StreamLimits(max_requests=32))

    async def some() -> list[int]:
        taken: list[int] = []
        while len(taken) < 100:
            batch = await source.take_async(8)
            taken += [request.doc_id for request in batch]
            for request in batch:
                source.answered(request.id)
        return taken

    assert len({*asyncio.run(some()), *drain(source)}) == 200
    source.close()


def test_threads_prepare_for_a_model_that_takes_whole_batches_after_an_event_loop() -> None:
    source = stream(requests(200), limits=StreamLimits(max_requests=32))

    async def first() -> Request:
        (request,) = await source.take_async(1)
        return request

    def rest() -> list[int]:
        taken: list[int] = []
        while batch := source.take_full(8):
            taken += [request.doc_id for request in batch]
            for request in batch:
                source.answered(request.id)
        return taken

    begun = asyncio.run(first())
    source.answered(begun.id)
    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(rest)
        try:
            taken = found.result(timeout=20)
        finally:
            source.close()
    assert [begun.doc_id, *taken] == list(range(200))
