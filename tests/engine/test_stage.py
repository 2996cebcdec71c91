from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from lmms_eval.engine.stage import QUICK_AFTER, QUICK_AGAIN, QUICK_AT_MOST, Failure, Handover, Stage


def test_every_item_is_worked_off_once_by_threads_that_start_with_the_first() -> None:
    seen: list[int] = []
    started = threading.active_count()
    stage: Stage[int] = Stage(seen.extend, Failure(), "stage", threads=3, length=4)
    stage.drain()
    assert threading.active_count() == started
    for number in range(100):
        stage.put(number)
    stage.drain()
    assert sorted(seen) == list(range(100))
    stage.put(100)  # a stage can be used again after ``drain``
    stage.drain()
    assert seen[-1] == 100


def test_an_error_ends_all_stages_that_share_it_and_reaches_who_puts_in() -> None:
    told: list[str] = []
    failure = Failure(on_error=lambda: told.append("error"))

    def fails(items: Iterator[int]) -> None:
        for item in items:
            raise ValueError(f"item {item}")

    def works(items: Iterator[int]) -> None:
        done.extend(items)
        ended.set()

    done: list[int] = []
    ended = threading.Event()
    bad, good = Stage(fails, failure, "bad"), Stage(works, failure, "good")
    good.put(1)
    bad.put(7)
    with pytest.raises(ValueError, match="item 7"):
        bad.drain()
    assert ended.wait(5)
    with pytest.raises(ValueError, match="item 7"):
        good.put(2)
    failure.carry(KeyError("later"))
    with pytest.raises(ValueError, match="item 7"):
        failure.check()
    assert told == ["error", "error"]
    assert not good.is_full


def test_a_full_stage_says_so_and_holds_back_until_it_is_stopped() -> None:
    go = threading.Event()

    def waits(items: Iterator[int]) -> None:
        for _ in items:
            go.wait(10)

    stage: Stage[int] = Stage(waits, Failure(), "slow", length=1)
    assert not stage.is_full
    stage.put(0)
    putter = threading.Thread(target=lambda: [stage.put(number) for number in range(3)])
    putter.start()
    putter.join(0.2)
    assert putter.is_alive() and stage.is_full
    stage.stop()
    putter.join(5)
    assert not putter.is_alive() and not stage.is_full
    start = time.monotonic()
    stage.join(0.1)  # its item is not waited for any longer
    assert time.monotonic() - start < 2
    go.set()
    stage.join(5)


def quick_pieces(handover: Handover) -> int:
    """The number of quick pieces of a thread until the event loop should do the work."""
    return next(number for number in range(1, 10_000) if handover.thread_did(0.0001))


def test_an_event_loop_does_work_that_was_quick_several_times_in_a_row() -> None:
    handover = Handover()
    assert not any(handover.thread_did(0.0001) for _ in range(QUICK_AFTER - 1))
    assert not handover.thread_did(0.01)
    assert quick_pieces(handover) == QUICK_AFTER


def test_threads_do_the_work_again_after_slow_pieces_and_then_for_longer_each_time() -> None:
    handover = Handover()
    for times in range(5):
        assert quick_pieces(handover) == min(QUICK_AFTER * QUICK_AGAIN**times, QUICK_AT_MOST)
        assert [handover.loop_did(seconds) for seconds in (0.001, 0.001, 0.0001, 0.001, 0.001, 0.001)] == [
            *[False] * 5,
            True,
        ]


def test_one_piece_that_blocks_is_enough() -> None:
    handover = Handover()
    assert quick_pieces(handover) == QUICK_AFTER
    assert handover.loop_did(0.2)
    assert quick_pieces(handover) > QUICK_AFTER
