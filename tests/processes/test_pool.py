from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lmms_eval.processes import Child, ChildError, Pool

WORKER = """
import os, time
from lmms_eval.processes import Parent
parent = Parent()
for line in parent:
    if line == b"die\\n":
        os._exit(5)
    if line == b"hang\\n":
        time.sleep(600)
    parent.send(str(os.getpid()).encode())
"""
Start = Callable[[], Child]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "worker_of_test.py").write_text(WORKER)
    return lambda: Child("worker_of_test")


@pytest.fixture
def pool() -> Iterator[Pool]:
    pool = Pool()
    yield pool
    pool.kill()
    pool.close()


def ask(pool: Pool, start: Start, line: bytes = b"pid", timeout_s: float = 20.0, kind: str = "") -> int:
    with pool.lend(start, kind) as child:
        return int(child.ask(line, timeout_s))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_child_does_one_job_after_the_other(pool: Pool, start: Start) -> None:
    first = ask(pool, start)
    assert ask(pool, start) == first
    assert pool.pids == [first]
    pool.close()
    assert pool.pids == []
    assert not is_alive(first)


def test_jobs_at_the_same_time_have_a_child_each(pool: Pool, start: Start) -> None:
    with pool.lend(start) as one, pool.lend(start) as other:
        assert one.ask(b"pid", 20) != other.ask(b"pid", 20)


def test_children_that_started_in_advance_take_the_first_jobs(pool: Pool, start: Start) -> None:
    pool.prepare(2, start)
    ready = set(pool.pids)
    with pool.lend(start) as one, pool.lend(start) as other:
        assert {one.pid, other.pid} == ready
        assert int(one.ask(b"pid", 20)) == one.pid


@pytest.mark.parametrize(("line", "problem"), [(b"die", "ended with code 5"), (b"hang", r"no answer within 0\.5 s")])
def test_a_job_that_kills_or_stops_its_child_fails_alone(pool: Pool, start: Start, line: bytes, problem: str) -> None:
    first = ask(pool, start)
    with pytest.raises(ChildError, match=problem):
        ask(pool, start, line, 0.5)
    assert not is_alive(first)
    assert ask(pool, start) != first


def test_a_child_that_died_while_idle_is_replaced(pool: Pool, start: Start) -> None:
    first = ask(pool, start)
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    assert ask(pool, start) != first


def test_a_child_is_replaced_after_its_share_of_jobs(start: Start) -> None:
    pool = Pool(most_jobs=2)
    pids = [ask(pool, start) for _ in range(3)]
    pool.close()
    assert pids[0] == pids[1] != pids[2]
    assert not is_alive(pids[0])


def test_kinds_have_children_of_their_own(pool: Pool, start: Start) -> None:
    one, other = ask(pool, start, kind="a"), ask(pool, start, kind="b")
    assert one != other
    assert (ask(pool, start, kind="a"), ask(pool, start, kind="b")) == (one, other)


def test_killing_the_pool_ends_a_job_and_refuses_more(pool: Pool, start: Start) -> None:
    problems: list[str] = []

    def hang() -> None:
        try:
            ask(pool, start, b"hang", 600)
        except ChildError as error:
            problems.append(str(error))

    thread = threading.Thread(target=hang)
    thread.start()
    while not pool.pids:
        time.sleep(0.01)
    pool.kill()
    thread.join(20)
    assert problems == ["the process worker_of_test ended with code -9"]
    with pytest.raises(ChildError, match="closed"):
        ask(pool, start)


def test_a_forked_process_leaves_the_children_to_their_owner(pool: Pool, start: Start) -> None:
    first = ask(pool, start)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = 0 if ask(pool, start) != first else 2
            pool.kill()
            pool.close()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert ask(pool, start) == first
