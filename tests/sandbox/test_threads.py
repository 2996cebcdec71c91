"""Threads of programs, and the bound by itself."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from lmms_eval.sandbox import launcher, threads
from lmms_eval.sandbox.launcher import Limits, Program
from lmms_eval.sandbox.layers import NAMESPACES, THREADS
from lmms_eval.sandbox.linux import (
    CAP_DAC_READ_SEARCH,
    CAP_KILL,
    CAP_SETGID,
    CAP_SETUID,
    has_capability,
    prctl,
    set_capabilities,
    start_bare_thread,
)
from lmms_eval.sandbox.policy import Policy
from lmms_eval.sandbox.threads import (
    ROOM,
    ROOM_AMONG_OTHERS,
    Bound,
    apply_bound,
    find_bound,
    in_fork,
    limit_applies,
    unused_user,
)
from tests.sandbox.kit import (
    COMBINATIONS,
    LIMITS,
    active,
    attempt,
    mark,
    only,
    policy_of,
    processes_named,
    refused,
    rename,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the layers are those of Linux")
PR_CAPBSET_READ = 23
BARE_THREADS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
stacks = ctypes.create_string_buffer(1000 << 12)
def start(number):
    top = ctypes.addressof(stacks) + (number + 1 << 12) & -16
    if libc.clone(ctypes.cast(libc.pause, ctypes.c_void_p), ctypes.c_void_p(top), 0x50F00, None) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
"""
"""By the bare system call: what the C library allots to a thread does not bound them."""
BARE_BOMB = (
    BARE_THREADS
    + """
for made in range(1000):
    os.write(1, b"." if made else b"")
    start(made)
os.write(1, b"ESCAPED")
os._exit(0)
"""
)


@pytest.fixture
def bounded(policy: Policy) -> Policy:
    if THREADS not in active(policy):
        pytest.skip("nothing bounds threads on this machine")
    return policy


def test_a_bomb_of_bare_threads(bounded: Policy) -> None:
    alone = os.geteuid() == 0 or "namespaces" in active(bounded)
    outcome = attempt(BARE_BOMB, bounded)
    assert outcome.stderr.rstrip().endswith(b"BlockingIOError: [Errno 11] Resource temporarily unavailable")
    made = len(outcome.stdout)
    assert made == ROOM if alone else ROOM <= made <= ROOM_AMONG_OTHERS


def test_no_threads_where_nothing_bounds_them(policy: Policy) -> None:
    unbound = Policy(probe=lambda: only(set(active(policy)) - {THREADS}))
    assert attempt(BARE_BOMB, unbound).stdout == b""
    ordinary = attempt("import threading; threading.Thread(target=print, args=('ESCAPED',)).start()", unbound)
    assert b"can't start new thread" in ordinary.stderr
    launcher.close()


@pytest.mark.parametrize("names", [(NAMESPACES, THREADS), (THREADS,)], ids=["namespaces", "nothing"])
def test_processes_are_bounded_alike_where_the_filter_does_not_forbid_them(names: tuple[str, ...]) -> None:
    policy = policy_of(names, allow_unsafe=True)
    if THREADS not in active(policy):
        pytest.skip("nothing bounds threads on this machine")
    name = mark()
    code = """
        import os, time
        for made in range(1000):
            if not os.fork():
                time.sleep(30)
            os.write(1, b".")
    """
    try:
        # Those that it has started keep its output open until the time is over.
        outcome = launcher.run(Program(rename(name) + textwrap.dedent(code)), replace(LIMITS, wall_s=1.0), policy)
    finally:
        launcher.close()
    assert b"BlockingIOError" in outcome.stderr, outcome
    assert len(outcome.stdout) == ROOM if os.geteuid() == 0 else ROOM <= len(outcome.stdout) <= ROOM_AMONG_OTHERS
    assert processes_named(name) == []


def test_ordinary_threads(bounded: Policy) -> None:
    code = """
        import threading
        gate = threading.Barrier(40, timeout=3)
        for _ in range(40):
            threading.Thread(target=lambda: print(gate.wait() < 40)).start()
    """
    outcome = launcher.run(Program(textwrap.dedent(code)), Limits(), bounded)
    assert outcome.stdout == b"True\n" * 40, outcome


def test_numpy_in_threads() -> None:
    pytest.importorskip("numpy")
    policy = policy_of(COMBINATIONS["no_landlock"])
    if THREADS not in active(policy):
        pytest.skip("nothing bounds threads on this machine")
    code = """
        from concurrent.futures import ThreadPoolExecutor
        import numpy
        ones = numpy.ones((50, 50))
        with ThreadPoolExecutor(32) as pool:
            print(sum(pool.map(lambda _: (ones @ ones).sum(), range(100))))
    """
    outcome = launcher.run(Program(textwrap.dedent(code), packages=("numpy",)), Limits(), policy)
    assert outcome.stdout == b"12500000.0\n", outcome


def test_sandboxes_do_not_count_the_threads_of_each_other(bounded: Policy) -> None:
    """Each program has nearly all that it may have while the other one has, too."""
    code = BARE_THREADS + f"import time\nfor made in range({ROOM - 4}): start(made)\ntime.sleep(0.3); os._exit(0)"
    with ThreadPoolExecutor(3) as pool:
        outcomes = list(pool.map(lambda _: launcher.run(Program(code), LIMITS, bounded), range(3)))
    assert [outcome.reason for outcome in outcomes] == ["ok"] * 3, outcomes


def test_the_bound_cannot_be_left(policy: Policy) -> None:
    """By becoming root again, or another user."""
    for call in ("setresuid(0, 0, 0)", "setreuid(0, 0)", "setresuid(12345, -1, -1)", "setgid(0)", "setfsuid(0)"):
        code = f"""
            import ctypes, os
            if ctypes.CDLL(None, use_errno=True).{call} == -1 or os.getuid() != 0:
                raise OSError(ctypes.get_errno(), 'refused')
            print('ESCAPED')
        """
        assert refused(attempt(code, policy)), call


def test_a_sandbox_outlives_the_thread_that_started_it(policy: Policy) -> None:
    for number in range(3):
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(launcher.run, Program(f"import os; print({number}, os.getppid())"), LIMITS, policy)
            assert done.result().stdout.startswith(b"%d " % number)


@pytest.fixture
def root() -> None:
    """Skips the test where this process is not root with the privileges that a real root has."""
    needed = (CAP_DAC_READ_SEARCH, CAP_KILL, CAP_SETGID, CAP_SETUID)
    if limit_applies() or not all(has_capability(number) for number in needed):
        pytest.skip("for root, whom the limit does not hold")


def bare_threads_until_refused(most: int) -> int:
    for made in range(most):
        try:
            start_bare_thread()
        except BlockingIOError:
            return made
    return most


def as_unused_user(action: Callable[[], None]) -> str:
    """``action`` in a process of a user that nobody else is."""

    def run() -> None:
        apply_bound(Bound(1 << 16, unused_user(), reads_as_root=True))
        action()

    return in_fork(run)


def could_gain(*capabilities: int) -> bool:
    """Whether a program file could grant this process a capability."""
    return any(prctl(PR_CAPBSET_READ, number) for number in capabilities)


def expect(condition: object, value: object = None) -> None:
    """``assert`` for a fork: the parent reports what it raises there."""
    if not condition:
        raise RuntimeError(f"not so: {value}")


@pytest.mark.usefixtures("root")
def test_root_becomes_nobody_and_reads_on(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "module.py").write_text("x = 1")
    user = unused_user()
    bound = find_bound(user, [str(closed)])
    assert bound == Bound(1 + ROOM, user)

    def program() -> None:
        apply_bound(bound)
        expect(os.getresuid() == os.getresgid() == (user, user, user), os.getresuid())
        expect(os.getgroups() == [], os.getgroups())
        expect(not could_gain(CAP_SETUID, CAP_DAC_READ_SEARCH))
        expect((closed / "module.py").read_text() == "x = 1")
        expect(not os.access(closed, os.W_OK))
        expect(bare_threads_until_refused(1000) == ROOM)
        os.setuid(0)

    assert "Operation not permitted" in in_fork(program)


@pytest.mark.usefixtures("root")
def test_root_without_the_privileges_for_it_is_nobody_in_the_count_alone() -> None:
    user = unused_user()

    def child() -> None:
        set_capabilities(CAP_SETUID)
        bound = find_bound(user, ["/usr/lib"])
        expect(bound == Bound(1 + ROOM, user, reads_as_root=True), bound)
        apply_bound(bound)
        expect((os.getuid(), os.geteuid()) == (user, 0), os.getresuid())
        expect(not has_capability(CAP_SETUID))
        expect(bare_threads_until_refused(1000) == ROOM)

    assert in_fork(child) == ""


@pytest.mark.usefixtures("root")
def test_root_that_may_become_nobody_is_told() -> None:
    def child() -> None:
        set_capabilities()
        find_bound(unused_user(), [])

    assert in_fork(child).startswith("no process can become an unused user")


def test_a_user_that_is_held_stays() -> None:
    held = limit_applies()
    if not held and not has_capability(CAP_SETUID):
        pytest.skip("root that may not become another user")

    def child() -> None:
        expect(limit_applies())
        bound = find_bound(None, [])
        expect(bound.user is None, bound)
        apply_bound(bound)
        expect(not could_gain(CAP_SETUID, CAP_DAC_READ_SEARCH))
        expect(bare_threads_until_refused(1000) >= ROOM)

    assert (in_fork(child) if held else as_unused_user(child)) == ""


@pytest.mark.usefixtures("root")
def test_threads_of_the_user_s_other_processes_count() -> None:
    """There are 21 with the process and one that it starts; then so many more that a program would have too few."""

    def child() -> None:
        others = os.fork()
        if others == 0:
            bare_threads_until_refused(18)
            signal.pause()
        try:
            _eventually_counted(21)
            bound = find_bound(None, [])
            expect(bound.most == 21 + ROOM_AMONG_OTHERS, bound)
            more = bare_threads_until_refused(1000)
            expect(more == ROOM_AMONG_OTHERS - ROOM + 1, more)
            try:
                os.fork()
            except BlockingIOError:
                again = find_bound(None, [])
                expect(again.most == bound.most + more, again)
            else:
                os._exit(2)
        finally:
            os.kill(others, signal.SIGKILL)

    assert as_unused_user(child) == ""


def _eventually_counted(count: int) -> None:
    for _ in range(500):
        if threads._count_threads() == count:
            return
    raise RuntimeError("the threads of the other process were not counted")


@pytest.mark.skipif(os.geteuid() == 0, reason="for a user whose other processes count, too")
def test_programs_have_threads_also_when_the_user_has_started_many_meanwhile() -> None:
    policy = policy_of(COMBINATIONS["no_namespaces"])
    code = BARE_THREADS + f"for made in range({ROOM}): start(made)\nos._exit(0)"
    assert launcher.run(Program(code), LIMITS, policy).reason == "ok"
    others = os.fork()
    if others == 0:
        bare_threads_until_refused(ROOM_AMONG_OTHERS)
        signal.pause()
    try:
        time.sleep(0.5)
        outcome = launcher.run(Program(code), LIMITS, policy)
    finally:
        os.kill(others, signal.SIGKILL)
        os.waitpid(others, 0)
        launcher.close()
    assert outcome.reason == "ok", outcome


def test_users_are_unlike() -> None:
    users = {unused_user() for _ in range(50)}
    assert len(users) == 50
    assert all(0x70000000 <= user < 0x7FFE0000 for user in users)
