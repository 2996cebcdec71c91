from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from lmms_eval.engine import team as team_module
from lmms_eval.engine.team import HostedStore, Place, Team, TeamError, place_from_environment
from lmms_eval.errors import UsageError
from tests.cases import for_each


class MemoryStore:
    """The part of a launch's store that is used, within one process."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()

    def set(self, key: str, value: bytes) -> None:
        with self._lock:
            self._values[key] = value

    def get(self, key: str) -> bytes:
        return self._values[key]

    def add(self, key: str, amount: int) -> int:
        with self._lock:
            self._counts[key] = self._counts.get(key, 0) + amount
            return self._counts[key]

    def delete_key(self, key: str) -> bool:
        with self._lock:
            return self._values.pop(key, None) is not None

    def check(self, keys: list[str]) -> bool:
        return all(key in self._values for key in keys)


class Counter:
    def __init__(self, counts: Any, add_others: Any) -> None:
        self.counts, self.add_others = counts, add_others


def team_of(size: int) -> list[Team]:
    store = MemoryStore()
    return [Team(Place(rank, size, rank), store) for rank in range(size)]


@for_each(("total", "size"), [(0, 2), (1, 4), (100, 3), (5000, 4)])
def test_blocks_cover_every_document_once(total: int, size: int) -> None:
    teams = team_of(size)
    taken: list[int] = []
    sizes: list[int] = []

    def work(team: Team) -> None:
        while block := team.next_block(total):
            taken.extend(block)
            sizes.append(len(block))

    threads = [threading.Thread(target=work, args=(team,)) for team in teams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(total))
    if total >= 5000:
        assert max(sizes) > 10
        assert sizes[-1] == 1


def test_values_larger_than_a_piece_arrive_whole() -> None:
    first, second = team_of(2)
    value = {"text": "x" * 3_000_000, "list": [1, None, "é"]}
    first.publish("big", value)
    assert second.receive("big", 0) == value


def test_a_failure_reaches_everybody_who_waits() -> None:
    first, second = team_of(2)
    second.fail("ZeroDivisionError: oh")
    with pytest.raises(TeamError, match="process 1: ZeroDivisionError: oh"):
        first.receive("never", 1)


def test_a_failure_stops_the_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmms_eval.engine.team.BEAT_S", 0.01)
    first, second = team_of(2)
    stopped = threading.Event()
    first.start()
    first.watch(stopped.set)
    second.fail("gone")
    assert stopped.wait(5)
    assert first.failure == "process 1: gone"
    first.close()


def test_a_silent_process_is_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmms_eval.engine.team.DEAD_AFTER_S", 0.2)
    first, _ = team_of(2)
    with pytest.raises(TeamError, match="process 1 has given no sign of life"):
        first.receive("never", 1)


def test_patience_ends() -> None:
    first, _ = team_of(2)
    start = time.monotonic()
    with pytest.raises(TeamError, match="did not answer"):
        first.receive("never", 1, patience_s=0.1)
    assert time.monotonic() - start < 5


def test_runs_of_a_batch_do_not_meet() -> None:
    first, second = team_of(2)
    for team in (first, second):
        team.begin(1)
    assert list(first.next_block(1)) == [0]
    for team in (first, second):
        team.begin(2)
    assert list(second.next_block(1)) == [0]


@for_each(
    ("environ", "message"),
    [
        ({"WORLD_SIZE": "two"}, "whole numbers"),
        ({"WORLD_SIZE": "2", "RANK": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"}, "RANK=2 with WORLD_SIZE=2"),
        ({"WORLD_SIZE": "2", "RANK": "1"}, "MASTER_ADDR"),
    ],
)
def test_an_environment_that_makes_no_sense(environ: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        place_from_environment(environ)


def test_no_launcher_is_one_process() -> None:
    assert place_from_environment({}) == Place()
    assert place_from_environment({"WORLD_SIZE": "", "RANK": ""}) == Place()


def test_numbers_are_added_up_over_the_processes() -> None:
    first, second = team_of(2)
    shown: list[dict[str, int]] = []
    numbers = {"done": 3}
    first.count(Counter(lambda: {"done": 10}, lambda others: shown.append(dict(others))))
    second.count(Counter(lambda: numbers, lambda others: None))
    first.exchange_counts()
    second.exchange_counts()
    numbers["done"] = 5
    second.exchange_counts()
    second.exchange_counts()
    first.exchange_counts()
    assert shown == [{"done": 0}, {"done": 5}]


def test_the_next_run_counts_anew() -> None:
    first, second = team_of(2)
    shown: list[dict[str, int]] = []
    second.count(Counter(lambda: {"done": 3}, lambda others: None))
    second.exchange_counts()
    for team in (first, second):
        team.begin(2)
    second.exchange_counts()
    first.count(Counter(lambda: {"done": 1}, lambda others: shown.append(dict(others))))
    first.exchange_counts()
    assert shown == [{"done": 0}]


def test_signs_of_life_carry_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmms_eval.engine.team.BEAT_S", 0.01)
    first, second = team_of(2)
    enough = threading.Event()
    first.count(Counter(lambda: {"done": 1}, lambda others: enough.set() if others["done"] == 7 else None))
    second.count(Counter(lambda: {"done": 7}, lambda others: None))
    for team in (first, second):
        team.start()
    assert enough.wait(5)
    for team in (first, second):
        team.close()
    assert not any(thread.name == "team" for thread in threading.enumerate())


class Gone(MemoryStore):
    """A store whose host has ended."""

    def set(self, key: str, value: bytes) -> None:
        raise RuntimeError("sendBytes failed")

    def get(self, key: str) -> bytes:
        raise RuntimeError("recvValue failed")

    def add(self, key: str, amount: int) -> int:
        raise RuntimeError("recvValue failed")

    def check(self, keys: list[str]) -> bool:
        raise ConnectionResetError("connection reset")

    def delete_key(self, key: str) -> bool:
        raise RuntimeError("recvValue failed")


@for_each(
    "call",
    [
        lambda team: team.receive("never", 1), lambda team: team.publish("name", 1), lambda team: team.next_block(9),
        lambda team: team.delete("name"), lambda team: team.store.delete_key("name"),
    ],
    ids=["hear", "tell", "next_block", "forget", "delete"],
)  # fmt: skip
def test_a_store_that_is_gone_is_said(call: Callable[[Team], object]) -> None:
    team = Team(Place(0, 2), HostedStore(Gone()))
    with pytest.raises(TeamError, match=r"hosts the launch's store .* has ended; .*start the same command again"):
        call(team)
    team.fail("reason")  # nobody is left to hear it


def test_signs_of_life_to_a_store_that_is_gone_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team_module, "BEAT_S", 0.01)
    team, told = Team(Place(0, 2), HostedStore(Gone())), threading.Event()
    team.watch(told.set)
    team.start()
    assert told.wait(5)
    assert "has ended" in team.failure
    team.close()


def test_patience_may_change_while_waiting() -> None:
    first, _ = team_of(2)
    limits = iter([None, None, 0.0])
    with pytest.raises(TeamError, match="did not answer within 0 s"):
        first.receive("never", 1, patience_s=lambda: next(limits))


def test_what_is_forgotten_is_gone() -> None:
    first, second = team_of(2)
    first.publish("name", "x" * 3_000_000)
    first.delete("name")
    with pytest.raises(TeamError, match="did not answer"):
        second.receive("name", 0, patience_s=0.0)
    assert not first.store._values  # type: ignore[attr-defined]
