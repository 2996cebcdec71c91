from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from lmms_eval.api.request import Request, Response
from lmms_eval.engine import lockstep
from lmms_eval.engine.lockstep import REPEATED, Lockstep
from lmms_eval.engine.stream import Stream, StreamLimits
from lmms_eval.engine.team import Team, TeamError
from tests.cases import for_each
from tests.engine.fakes import FakeTask
from tests.engine.test_team import team_of

Step = tuple[str, list[str]]
"""Task and ids of a block."""


def requests(task: FakeTask, doc_ids: Sequence[int]) -> list[Request]:
    return [task.exchange(number, 0).open()[0] for number in doc_ids]


class Member:
    """One process: its stream, and the blocks that it has taken."""

    def __init__(self, team: Team, tasks: Sequence[FakeTask], items: Sequence[Request]) -> None:
        self.stream = Stream(iter(items), lambda r: r, lambda r, e: None, lambda: False, StreamLimits(threads=1))
        self.lockstep = Lockstep(self.stream, team, tasks, self.prepare, self.stream.stop)
        self.blocks: list[list[str]] = []
        self.borrowed: list[str] = []
        self.stream.start()

    def prepare(self, request: Request) -> Request:
        self.borrowed.append(request.id)
        return request

    def work(self, size: int, answer: Callable[[Request, int], Response | None]) -> None:
        while block := self.lockstep.take(size):
            self.blocks.append([request.id for request in block])
            for request in block:
                response = answer(request, len(block))
                if response is not None:
                    self.lockstep.keeps(response)


def fine(request: Request, size: int) -> Response:
    return Response(request.id, text="a")


def members(tasks: Sequence[FakeTask], *items: Sequence[Request]) -> list[Member]:
    return [Member(team, tasks, own) for team, own in zip(team_of(len(items)), items, strict=True)]


def run(group: Sequence[Member], answer: Callable[[Request, int], Response | None] = fine, size: int = 4) -> None:
    with ThreadPoolExecutor(len(group)) as pool:
        for future in [pool.submit(member.work, size, answer) for member in group]:
            future.result(timeout=30)


def own(member: Member) -> list[str]:
    return [name for block in member.blocks for name in block if REPEATED not in name]


def test_blocks_have_one_size_and_one_task_everywhere() -> None:
    first, second = FakeTask(20, "first"), FakeTask(20, "second")
    items = [
        requests(first, range(rank, 11, 3)) + requests(second, range(rank, 8, 3)) for rank in range(3)
    ]  # 4 + 3, 4 + 3, 3 + 2
    group = members([first, second], *items)
    run(group)
    shapes = [[(len(block), {name.split("/")[0] for name in block}) for block in member.blocks] for member in group]
    assert shapes[0] == shapes[1] == shapes[2]
    assert [size for size, _ in shapes[0]] == [4, 3]
    assert all(len(tasks) == 1 for _, tasks in shapes[0])
    for member, expected in zip(group, items, strict=True):
        assert own(member) == [request.id for request in expected]
        names = [name for block in member.blocks for name in block]
        assert len(names) == len(set(names))
    assert group[2].blocks[0][-1].startswith(f"{items[2][2].id}{REPEATED}")
    assert not group[2].borrowed


def test_a_process_without_a_request_asks_one_of_another() -> None:
    task = FakeTask(20)
    group = members([task], requests(task, [7, 8]), [])
    run(group)
    assert [len(block) for block in group[1].blocks] == [2]
    assert group[1].borrowed == ["fake/7/0/0/0"]
    assert own(group[1]) == []


def test_nothing_to_do_anywhere() -> None:
    group = members([FakeTask(1)], [], [])
    run(group)
    assert [member.blocks for member in group] == [[], []]


def test_one_that_fails_is_asked_again_alone_by_all_together() -> None:
    task = FakeTask(20)
    group = members([task], requests(task, range(0, 12, 2)), requests(task, range(1, 12, 2)))
    recorded: list[str] = []

    def answer(request: Request, size: int) -> Response | None:
        if request.doc_id == 2 and size > 1:
            return Response.failure(request.id, "internal", "a neighbour's fault")
        recorded.append(request.id)
        return Response(request.id, text="a")

    run(group, answer, size=3)
    assert [len(block) for block in group[0].blocks] == [len(block) for block in group[1].blocks]
    assert [len(block) for block in group[0].blocks] == [3, 1, 3, 2][: len(group[0].blocks)]
    assert group[0].blocks[1] == ["fake/2/0/0/0"]
    assert sorted(name for name in recorded if REPEATED not in name) == sorted(f"fake/{n}/0/0/0" for n in range(12))


@for_each(("kind", "again"), [("internal", True), ("out_of_memory", True), ("bad_request", False)])
def test_failures_that_are_recorded_at_once(kind: str, again: bool) -> None:
    task = FakeTask(4)
    (member,) = members([task], requests(task, range(2)))
    first = member.lockstep.take(2)[0]
    assert member.lockstep.keeps(Response.failure(first.id, kind, "no")) is not again  # type: ignore[arg-type]
    assert member.lockstep.keeps(Response(f"{first.id}{REPEATED}3", text="a")) is False


def test_one_that_stops_ends_all() -> None:
    task = FakeTask(40)
    group = members([task], requests(task, range(20)), requests(task, range(20, 40)))

    def answer(request: Request, size: int) -> Response:
        if request.doc_id == 25:
            group[1].stream.stop()
        return Response(request.id, text="a")

    run(group, answer)
    assert len(group[0].blocks) == len(group[1].blocks) == 2
    assert group[0].stream.is_stopped


def test_a_model_that_ends_early_ends_all() -> None:
    task = FakeTask(40)
    group = members([task], requests(task, range(20)), requests(task, range(20, 40)))
    with ThreadPoolExecutor(2) as pool:
        whole = pool.submit(group[0].work, 4, fine)
        pool.submit(group[1].lockstep.take, 4).result(timeout=30)
        group[1].lockstep.leave()
        whole.result(timeout=30)
    assert len(group[0].blocks) == 1
    assert group[0].lockstep.take(4) == []


def test_one_that_never_comes_after_a_failure_here_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockstep, "PATIENCE_S", 0.2)
    task = FakeTask(40)
    group = members([task], requests(task, range(20)), requests(task, range(20, 40)))
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(group[1].lockstep.take, 4)
        block = group[0].lockstep.take(4)
        other.result(timeout=30)
    group[0].lockstep.keeps(Response.failure(block[0].id, "internal", "before the collective"))
    with pytest.raises(TeamError, match=r"process 1 did not answer within 0\.2 s after a call .* no longer line up"):
        group[0].lockstep.take(4)


def test_a_failure_elsewhere_ends_the_waiting() -> None:
    task = FakeTask(4)
    first, second = team_of(2)
    member = Member(first, [task], requests(task, range(4)))
    threading.Timer(0.1, second.fail, ["ValueError: oh"]).start()
    with pytest.raises(TeamError, match="process 1: ValueError: oh"):
        member.lockstep.take(4)


@for_each("fails", [True, False])
def test_a_stopped_process_waits_a_little_for_the_reason(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    monkeypatch.setattr(lockstep, "STOPPED_PATIENCE_S", 10.0 if fails else 0.2)
    task = FakeTask(4)
    first, second = team_of(2)
    member = Member(first, [task], requests(task, range(4)))
    with ThreadPoolExecutor(1) as pool:
        block = pool.submit(member.lockstep.take, 4)
        time.sleep(0.1)
        member.stream.stop()
        time.sleep(0.2)
        if fails:
            second.fail("ValueError: oh")
            with pytest.raises(TeamError, match="process 1: ValueError: oh"):
                block.result(timeout=30)
        else:
            assert block.result(timeout=30) == []


def test_the_other_ways_to_take() -> None:
    task = FakeTask(4)
    (member,) = members([task], requests(task, range(3)))
    assert member.lockstep.take_full(4) == []
    assert len(asyncio.run(member.lockstep.take_async(4))) == 3


def test_what_everybody_has_heard_is_deleted() -> None:
    task = FakeTask(60)
    group = members([task], requests(task, range(30)), requests(task, range(30, 60)))
    run(group, size=2)
    values = group[0].lockstep._team.store._values  # type: ignore[attr-defined]
    assert len(group[0].blocks) == 15
    assert len([key for key in values if "step/" in key]) <= 2 * 2 * 3
