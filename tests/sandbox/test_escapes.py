"""Programs that try to get out. Each must fail as a test case, within its limits, and leave nothing behind.

A program that gets what it wants prints ESCAPED and ends well; one that is refused ends with an exception.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from lmms_eval.sandbox import launcher
from lmms_eval.sandbox.launcher import Outcome, Program
from lmms_eval.sandbox.policy import Policy
from tests.cases import for_each
from tests.sandbox.kit import (
    COMBINATIONS,
    LIMITS,
    active,
    attempt,
    mark,
    policy_of,
    processes_named,
    refused,
    rename,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the layers are those of Linux")
IMPATIENT = replace(LIMITS, wall_s=0.5)
SECRET = "the-secret-of-this-test"


@pytest.fixture
def best() -> Policy:
    """What this machine has: for limits, which hang on no layer."""
    return policy_of(COMBINATIONS["all"])


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of this user with a secret in it."""
    (tmp_path / "secret.txt").write_text(SECRET)
    return tmp_path


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[int, list[bytes]]]:
    """A server on the loopback device: its port, and what came in over TCP and UDP."""
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        port = tcp.getsockname()[1]
        udp.bind(("127.0.0.1", port))
        udp.settimeout(0.1)
        tcp.settimeout(0.1)
        done = threading.Event()

        def listen() -> None:
            while not done.is_set():
                with contextlib.suppress(TimeoutError):
                    connection, _ = tcp.accept()
                    seen.append(b"connected")
                    connection.close()
                with contextlib.suppress(TimeoutError):
                    seen.append(udp.recv(100))

        thread = threading.Thread(target=listen)
        thread.start()
        yield port, seen
        done.set()
        thread.join()


def spent(outcome: Outcome) -> bool:
    """Whether it was ended for its processor time, or on a busy machine before it came so far."""
    return outcome.reason in ("cpu", "wall") and outcome.cpu_s < LIMITS.cpu_s + 1.5


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/etc/hostname", "/home", "/tmp", "/proc/self/environ", "/proc/1/environ", "/sys/kernel"]
)
def test_reading_the_machine(path: str, policy: Policy) -> None:
    code = f"import os\nprint('ESCAPED', os.listdir({path!r}) if os.path.isdir({path!r}) else open({path!r}).read())"
    assert refused(attempt(code, policy))


def test_reading_files_of_the_user(outside: Path, policy: Policy) -> None:
    home = str(Path.home())
    for path in (str(outside / "secret.txt"), str(Path(__file__)), f"{home}/.ssh/id_rsa", f"{home}/.cache"):
        assert refused(attempt(f"print('ESCAPED', open({path!r}).read())", policy))
    assert refused(attempt(f"import os; print('ESCAPED', os.listdir({str(outside)!r}))", policy))


def test_reading_beyond_the_standard_library(policy: Policy) -> None:
    packages = Path(pytest.__file__).parents[1]
    if str(packages).startswith(os.path.join(sys.base_prefix, "lib")):
        pytest.skip("packages are installed in the interpreter's own library folder, which is readable as a whole")
    assert refused(attempt(f"print('ESCAPED', open({pytest.__file__!r}).read())", policy))


@pytest.mark.parametrize("place", ["outside", ".", "/tmp", "/dev/shm", "/"])
def test_writing(place: str, outside: Path, policy: Policy) -> None:
    folder = str(outside) if place == "outside" else place
    path = f"{folder}/{mark()}"
    assert refused(attempt(f"open({path!r}, 'w').write('x'); print('ESCAPED')", policy))
    assert refused(attempt(f"import os; os.mkdir({path!r}); print('ESCAPED')", policy))
    assert not os.path.exists(path)
    assert sorted(entry.name for entry in outside.iterdir()) == ["secret.txt"]


def test_changing_files(outside: Path, policy: Policy) -> None:
    secret = outside / "secret.txt"
    for call in ("os.remove(p)", "os.chmod(p, 0)", "os.rename(p, p + '2')", "os.truncate(p, 0)", "os.utime(p, (0, 0))"):
        assert refused(attempt(f"import os; p = {str(secret)!r}; {call}; print('ESCAPED')", policy)), call
    library = os.__file__
    for call in ("open(p, 'a')", "os.remove(p)", "os.chmod(p, 0o777)", "os.utime(p)"):
        assert refused(attempt(f"import os; p = {library!r}; {call}; print('ESCAPED')", policy)), call
    assert secret.read_text() == SECRET
    assert secret.stat().st_mtime > 0


def test_links_out_of_the_working_folder(outside: Path, policy: Policy) -> None:
    for make in ("os.symlink", "os.link"):
        code = f"import os; {make}({str(outside / 'secret.txt')!r}, 'link'); print('ESCAPED', open('link').read())"
        assert refused(attempt(code, policy))
    assert refused(attempt("print('ESCAPED', open('../../../../etc/passwd').read())", policy))


def test_network(server: tuple[int, list[bytes]], policy: Policy) -> None:
    port, seen = server
    with socket.create_connection(("127.0.0.1", port)):
        pass  # the server can be reached from here
    time.sleep(0.3)
    assert seen == [b"connected"] or seen[-1:] == [b"connected"]
    before = len(seen)
    for code in (
        f"import socket; socket.create_connection(('127.0.0.1', {port}), 1); print('ESCAPED')",
        f"import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port})); print('ESCAPED')",
        f"import urllib.request as u; print('ESCAPED', u.urlopen('http://127.0.0.1:{port}/', timeout=1))",
        "import socket; socket.create_server(('127.0.0.1', 0)); print('ESCAPED')",
        "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW); print('ESCAPED')",
    ):
        assert attempt(code, policy).reason == "nonzero"
    time.sleep(0.3)
    assert len(seen) == before


def test_unix_sockets(outside: Path, policy: Policy) -> None:
    path, abstract = str(outside / "door"), "\0" + mark()
    for address in (path, abstract):
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(address)
            door.listen()
            code = f"import socket; socket.socket(socket.AF_UNIX).connect({address!r}); print('ESCAPED')"
            assert refused(attempt(code, policy))


@pytest.mark.parametrize(
    "code",
    [
        "import os\nwhile True:\n    os.fork()",
        "import subprocess; print('ESCAPED', subprocess.run(['/bin/sh', '-c', 'echo hello'], capture_output=True))",
        "import os\nif os.system('true'):\n    raise OSError('refused')\nprint('ESCAPED')",
        "import os; os.execv('/bin/true', ['true'])",
        "import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'print(\"ESCAPED\")'])",
        "import os; os.posix_spawn('/bin/true', ['true'], {}); print('ESCAPED')",
        "import multiprocessing as m; p = m.get_context('fork').Process(target=print); p.start(); print('ESCAPED')",
        "import pty; print('ESCAPED', pty.fork())",
    ],
    ids=["fork_bomb", "shell", "system", "exec", "interpreter", "spawn", "multiprocessing", "terminal"],
)
def test_other_processes(code: str, policy: Policy) -> None:
    assert attempt(code, policy).reason == "nonzero"


def test_a_bomb_of_threads(policy: Policy) -> None:
    code = """
        import threading, time
        while True:
            threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
    """
    outcome = attempt(code, policy)
    assert outcome.reason in ("nonzero", "memory", "cpu", "wall")


def test_memory(best: Policy) -> None:
    assert attempt("x = []\nwhile True: x.append(bytearray(10**7))", best).reason == "memory"
    assert attempt("x = 'x' * (1 << 34); print('ESCAPED')", best).reason == "memory"
    held = attempt("x = []\nwhile True:\n    try: x.append(bytearray(10**6))\n    except MemoryError: pass", best)
    assert spent(held)


def test_endless_loops(best: Policy) -> None:
    assert spent(attempt("while True: pass", best))
    shut = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    assert spent(attempt(shut, best))
    begin = time.monotonic()
    assert attempt("import time; time.sleep(60)", best, IMPATIENT).reason == "wall"
    closed = "import os; os.close(1); os.close(2)\nimport time; time.sleep(60)"
    assert attempt(closed, best, IMPATIENT).reason == "wall"
    assert time.monotonic() - begin < 4


def test_endless_output(best: Policy) -> None:
    outcome = attempt("while True: print('x' * 99)", best)
    assert outcome.reason == "output"
    assert len(outcome.stdout) == LIMITS.output_bytes
    assert spent(attempt("import sys\nwhile True: sys.stderr.write('x' * 999)", best))


def test_limits_cannot_be_raised(policy: Policy) -> None:
    code = """
        import resource
        kind = resource.{}
        resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print('ESCAPED')
    """
    for kind in ("RLIMIT_CPU", "RLIMIT_AS", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_NPROC"):
        outcome = attempt(code.format(kind), policy)
        assert b"not allowed to raise maximum limit" in outcome.stderr


def test_signals_to_the_parent(policy: Policy) -> None:
    """Harmless signals: one that gets through would be seen, and end nothing."""
    seen: list[int] = []
    before = signal.signal(signal.SIGURG, lambda number, _frame: seen.append(number))
    try:
        for target in ("os.getppid()", str(os.getpid()), "-1", "1"):
            code = f"import os, signal; os.kill({target}, signal.SIGURG); print('ESCAPED')"
            assert refused(attempt(code, policy)), target
        code = f"import os, signal; os.killpg({os.getpgrp()}, signal.SIGURG); print('ESCAPED')"
        assert refused(attempt(code, policy))
        time.sleep(0.05)
    finally:
        signal.signal(signal.SIGURG, before)
    assert seen == []


def test_signals_by_way_of_files(policy: Policy) -> None:
    code = f"import fcntl, os; r, w = os.pipe(); fcntl.fcntl(r, fcntl.F_SETOWN, {os.getpid()}); print('ESCAPED')"
    assert refused(attempt(code, policy))


def test_the_secrets_of_the_environment(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    launcher.close()  # the next child is started with this environment around it
    outcome = launcher.run(Program("import os; print(sorted(os.environ), os.environ)"), LIMITS, policy)
    assert outcome.reason == "ok"
    assert SECRET.encode() not in outcome.stdout
    assert b"API_KEY" not in outcome.stdout
    for process in ("self", "{os.getppid()}", str(os.getpid())):
        # Its own fd/0 is its own input.
        for name in ("environ", "mem", "maps", "cmdline", "root/etc/passwd", *(["fd/0"] if process != "self" else [])):
            code = f"import os; print('ESCAPED', open(f'/proc/{process}/{name}', 'rb').read())"
            assert refused(attempt(code, policy)), (process, name)


def test_the_memory_of_others(policy: Policy) -> None:
    """Through ctypes, which programs may load."""
    for call in (f"ptrace(16, {os.getpid()}, 0, 0)", "ptrace(16, os.getppid(), 0, 0)", "ptrace(0, 0, 0, 0)"):
        code = f"""
            import ctypes, os
            if ctypes.CDLL(None, use_errno=True).{call} == -1:
                raise OSError(ctypes.get_errno(), 'refused')
            print('ESCAPED')
        """
        assert refused(attempt(code, policy)), call


@pytest.mark.parametrize(
    "call",
    [
        "unshare(0x10000000)",
        "setuid(0)",
        "mount(b'tmpfs', b'/work', b'tmpfs', 0, None)",
        "chroot(b'/usr')",
        "setns(0, 0)",
        "syscall(425, 8, 0)",
        "syscall(321, 0, 0, 0)",
        "syscall(250, 0, -4, 0)",
        "syscall(298, 0, 0, -1, -1, 0)",
    ],
    ids=["unshare", "setuid", "mount", "chroot", "setns", "io_uring", "bpf", "keyctl", "perf"],
)
def test_system_calls_through_ctypes(call: str, policy: Policy) -> None:
    code = f"""
        import ctypes
        if ctypes.CDLL(None, use_errno=True).{call} == -1:
            raise OSError(ctypes.get_errno(), 'refused')
        print('ESCAPED')
    """
    assert refused(attempt(code, policy))


def test_harmless_use_of_ctypes_works(policy: Policy) -> None:
    outcome = launcher.run(Program("import ctypes; print(ctypes.CDLL(None).abs(-3))"), LIMITS, policy)
    assert outcome.stdout == b"3\n"


DAEMON = """
import os, sys, time
if os.fork():
    sys.exit(3)
os.setsid()
if os.fork():
    os._exit(0)
for number in range(3):
    os.close(number)
time.sleep(60)
"""


def test_daemons_cannot_be_started(policy: Policy) -> None:
    assert refused(attempt(DAEMON, policy))


@for_each("layers", [("namespaces",), ()], ids=["namespaces_alone", "nothing"])
def test_daemons_do_not_outlive_their_program_where_they_can_be_started(layers: tuple[str, ...]) -> None:
    policy = policy_of(layers, allow_unsafe=True)
    name = mark()
    try:
        outcome = launcher.run(Program(rename(name) + DAEMON), LIMITS, policy)
        assert (outcome.reason, outcome.status) == ("nonzero", 3)
        assert processes_named(name) == []
    finally:
        launcher.close()


def test_programs_die_with_the_harness(policy: Policy) -> None:
    """Also when it is killed so that it cannot clean up."""
    name = mark()
    code = f"""
        from lmms_eval.sandbox.launcher import run
        from lmms_eval.sandbox.policy import Policy
        from lmms_eval.sandbox.launcher import Program
        from tests.sandbox.kit import only
        policy = Policy(probe=lambda: only({active(policy)!r}))
        run(Program({rename(name) + "import time; time.sleep(30)"!r}), policy=policy)
    """
    harness = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], cwd=Path(__file__).parents[2])
    try:
        assert _eventually(lambda: len(processes_named(name)) == 1)
    finally:
        harness.kill()
        harness.wait()
    assert _eventually(lambda: processes_named(name) == [])


def _eventually(condition: object) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.02)
    return False
