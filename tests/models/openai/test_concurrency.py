"""The gate alone: how its limit moves, and whom it lets through."""

from __future__ import annotations

import asyncio
from typing import Any

from lmms_eval.models.openai.arguments import Arguments
from lmms_eval.models.remote.asking import Gate


def make_gate(**arguments: Any) -> Gate:
    return Gate(Arguments(model="m", **arguments))


def complete(gate: Gate, number: int, latency: float | None = 0.1, **outcome: bool) -> None:
    for _ in range(number):
        gate.completed(latency, **outcome)


def test_starts_at_num_concurrent_which_is_the_ceiling() -> None:
    gate = make_gate(num_concurrent=8)
    assert gate.limit == 8
    complete(gate, 100)
    assert gate.limit == 8


def test_adaptive_lifts_the_ceiling_by_a_tenth_per_window() -> None:
    gate = make_gate(num_concurrent=20, adaptive_concurrency=True, adaptive_max_concurrency=23)
    complete(gate, 19)
    assert gate.limit == 20
    complete(gate, 1)
    assert gate.limit == 22
    complete(gate, 22)
    assert gate.limit == 23


def test_a_start_above_the_adaptive_maximum_is_lowered_to_it() -> None:
    assert make_gate(num_concurrent=500, adaptive_concurrency=True, adaptive_max_concurrency=64).limit == 64


def test_failures_lower_it_and_successes_raise_it_again() -> None:
    gate = make_gate(num_concurrent=10)
    complete(gate, 8)
    complete(gate, 2, None, failed=True)
    assert gate.limit == 7
    complete(gate, 7 + 8 + 9)
    assert gate.limit == 10 and gate.describe()["lowest"] == 7


def test_a_server_that_never_answered_is_not_asked_less() -> None:
    gate = make_gate(num_concurrent=10)
    complete(gate, 40, None, failed=True)
    assert gate.limit == 10


def test_requests_given_up_for_rate_limits_lower_it() -> None:
    gate = make_gate(num_concurrent=10)
    complete(gate, 10, None, failed=True, rate_limited=True)
    assert gate.limit == 7


def test_slow_answers_lower_it_only_where_latency_counts() -> None:
    slow = make_gate(num_concurrent=10)
    complete(slow, 40, latency=60.0)
    assert slow.limit == 10
    adaptive = make_gate(num_concurrent=10, adaptive_concurrency=True)
    complete(adaptive, 10, latency=60.0)
    assert adaptive.limit == 7
    targeted = make_gate(num_concurrent=10, adaptive_target_latency_s=5)
    complete(targeted, 10, latency=6.0)
    assert targeted.limit == 7


def test_a_single_429_takes_the_decrease_factor() -> None:
    gate = make_gate(num_concurrent=32)
    gate.rate_limited(0, 0.0)
    assert gate.limit == 22


def test_a_burst_of_429_goes_down_to_what_was_let_through_and_to_a_quarter_at_most() -> None:
    gate = make_gate(num_concurrent=32)
    for _ in range(20):
        gate.rate_limited(0, 0.0)
    assert gate.limit == 12
    for _ in range(12):
        gate.rate_limited(0, 0.0)
    assert gate.limit == 8
    gate.rate_limited(1, 0.0)
    assert gate.limit == 5, "the next burst"
    gate.rate_limited(0, 0.0)
    assert gate.limit == 5, "a late answer to an attempt before the last burst says nothing new"


def test_never_below_the_minimum() -> None:
    gate = make_gate(num_concurrent=4, adaptive_concurrency=True, adaptive_min_concurrency=3)
    for burst in range(5):
        gate.rate_limited(burst, 0.0)
    assert gate.limit == 3


def test_attempts_wait_for_the_limit() -> None:
    async def run() -> None:
        gate = make_gate(num_concurrent=2)
        assert [await gate.admit(), await gate.admit()] == [0, 0]
        third = asyncio.create_task(gate.admit())
        await asyncio.sleep(0.01)
        assert not third.done() and gate.active == 2
        gate.rate_limited(0, 0.0)
        gate.release()
        await asyncio.sleep(0.01)
        assert not third.done(), "the limit is 1 now"
        gate.release()
        assert await third == 1

    asyncio.run(run())


def test_room_waits_until_a_request_ends() -> None:
    async def run() -> None:
        gate = make_gate(num_concurrent=2)
        assert await gate.room() == 2
        gate.opened()
        gate.opened()
        waiting = asyncio.create_task(gate.room())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        gate.closed()
        assert await waiting == 1

    asyncio.run(run())


def test_a_pause_holds_everybody_back() -> None:
    async def run() -> float:
        gate = make_gate(num_concurrent=2)
        loop = asyncio.get_running_loop()
        gate.rate_limited(await gate.admit(), 0.2)
        gate.release()
        started = loop.time()
        await gate.admit()
        return loop.time() - started

    assert 0.19 <= asyncio.run(run()) < 2
