from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lmms_eval.sandbox import launcher
from lmms_eval.sandbox.launcher import Limits, Outcome, Program, SandboxError, package_folders, run
from lmms_eval.sandbox.layers import Layer
from lmms_eval.sandbox.policy import Policy, SandboxRefused, using
from tests.cases import for_each
from tests.sandbox.kit import only, policy_of


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    yield
    launcher.close()


def ran(source: str, stdin: str = "", limits: Limits | None = None, **details: object) -> Outcome:
    """With the layers that this machine has, if any: these tests are about programs that mean no harm."""
    return run(Program(source, stdin, **details), limits, Policy(allow_unsafe=True))  # type: ignore[arg-type]


def test_an_ordinary_script() -> None:
    outcome = ran("import sys\nprint(input(), sys.stdin.read().split())\nprint('é', file=sys.stderr)", "a b\nc d\ne\n")
    assert (outcome.reason, outcome.status) == ("ok", 0)
    assert outcome.stdout == b"a b ['c', 'd', 'e']\n"
    assert outcome.stderr == "é\n".encode()
    assert 0 < outcome.cpu_s < 2
    assert 0 < outcome.wall_s < 10


def test_the_script_is_the_main_module() -> None:
    source = """
from dataclasses import dataclass
import pickle, sys

@dataclass
class Point:
    x: int

def double(x):
    return twice(x)

def twice(x):
    return 2 * x

if __name__ == '__main__':
    print(double(3), pickle.loads(pickle.dumps(Point(1))), sys.modules['__main__'].twice(2))
"""
    assert ran(source).stdout == b"6 Point(x=1) 4\n"


@for_each(
    ("source", "reason", "status"),
    [
        ("exit()", "ok", 0),
        ("import sys; sys.exit(0)", "ok", 0),
        ("exit(3)", "nonzero", 3),
        ("import sys; sys.exit('no')", "nonzero", 1),
        ("1 / 0", "nonzero", 1),
        ("x = (", "nonzero", 1),
        ("import os; os.abort()", "killed", -6),
        ("import os; os._exit(7)", "nonzero", 7),
        ("raise KeyboardInterrupt", "nonzero", 1),
        ("import sys; sys.stdout.close()", "ok", 0),
        ("import atexit; atexit.register(exit, 4)", "ok", 0),
        ("raise MemoryError", "memory", 86),
    ],
)
def test_how_programs_end(source: str, reason: str, status: int) -> None:
    outcome = ran(source)
    assert (outcome.reason, outcome.status) == (reason, status)


def test_tracebacks_show_the_program_alone() -> None:
    lines = ran("def f():\n    return 1 / 0\nf()").stderr.decode().splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert [line.split('"')[1] for line in lines if line.startswith("  File")] == ["<program>"] * 2


def test_threads_and_what_is_registered_for_the_end_still_run() -> None:
    source = """
import atexit, sys, threading, time
sys.setrecursionlimit(10**6)
threading.stack_size(128 << 20)
atexit.register(print, "end")
def deep(n):
    return n and 1 + deep(n - 1)
def work():
    time.sleep(0.05)
    print(deep(20000))
threading.Thread(target=work).start()
"""
    outcome = ran(source)
    assert outcome.stdout == b"20000\nend\n", outcome


def test_output_is_cut() -> None:
    limits = Limits(output_bytes=10)
    assert ran("print('x' * 9)", limits=limits).reason == "ok"
    outcome = ran("print('x' * 100)", limits=limits)
    assert (outcome.reason, outcome.stdout) == ("output", b"x" * 10)


def test_large_output_and_input_do_not_block() -> None:
    text = "y" * 700_000
    outcome = ran("import sys; text = sys.stdin.read(); print(text); print(text, file=sys.stderr)", text)
    assert outcome.reason == "ok"
    assert outcome.stdout == text.encode() + b"\n"
    assert len(outcome.stderr) == 2000


def test_too_large_a_program_is_refused() -> None:
    assert ran("print(1)" + " " * 1000, limits=Limits(source_bytes=1000)).reason == "refused"


def test_captured_style() -> None:
    def text(source: str, stdin: str = "", one_namespace: bool = True) -> bytes | str:
        outcome = ran(source, stdin, style="captured", one_namespace=one_namespace)
        return outcome.stdout if outcome.reason == "ok" else outcome.reason

    assert text("print(input('prompt'), [input()])", "a\nb") == b"a ['b']\n"
    assert text("input(); input()", "a") == b"ERROR during execution: "
    assert text("import sys; print([sys.stdin.read()])", "a") == b"['']\n"
    assert text("print(1); raise ValueError('x')") == b"ERROR during execution: x"
    assert text("print(1); exit(0)") == "nonzero"
    assert text("print(1); import os; os._exit(0)") == "nonzero"
    assert text("import os; os.write(1, b'no')") == b""
    helper = "def f(): return 1\ndef g(): return f()\nprint(g())"
    assert text(helper) == b"1\n"
    assert text(helper, one_namespace=False) == b"ERROR during execution: name 'f' is not defined"
    assert text("print(__name__)") == b"__main__\n"
    assert text("print(__name__ == '__main__', io.StringIO('k').read())", one_namespace=False) == b"False k\n"
    assert text("print('\\ud800')") == b"\xed\xa0\x80\n"


def test_no_file_of_the_harness_is_open_in_a_program() -> None:
    source = """
import os
def is_open(number):
    try:
        return bool(os.fstat(number))
    except OSError:
        return False
print([number for number in range(64) if is_open(number)])
"""
    assert ran(source).stdout == b"[0, 1, 2]\n"
    assert ran(source, style="captured").stdout == b"[0, 1, 2, 3]\n"


def test_every_program_begins_anew() -> None:
    assert ran("import math, builtins; math.pi = 3; builtins.print = None").reason == "ok"
    assert ran("import math; print(math.pi > 3)").stdout == b"True\n"
    orders = {ran("print({'a', 'b', 'c', 'd', 'e'})").stdout for _ in range(2)}
    launcher.close()
    assert orders == {ran("print({'a', 'b', 'c', 'd', 'e'})").stdout}


def test_what_can_be_imported() -> None:
    pytest.importorskip("numpy")
    use = "import numpy; print(numpy.arange(4).sum(), numpy.linalg.inv(numpy.eye(2)).tolist())"
    assert b"No module named 'numpy'" in ran(use).stderr
    assert ran(use, packages=("numpy", "surely_no_such_package")).stdout == b"6 [[1.0, 0.0], [0.0, 1.0]]\n"
    for module in ("yaml", "pytest", "lmms_eval.errors"):
        assert b"ModuleNotFoundError" in ran(f"import {module}", packages=("numpy",)).stderr


def test_package_folders() -> None:
    numpy = pytest.importorskip("numpy")
    assert package_folders("numpy")[0] == str(Path(numpy.__file__).resolve().parent)
    assert package_folders("surely_no_such_package") == package_folders("typing_extensions") == ()


def test_programs_in_several_threads() -> None:
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda n: ran(f"print({n})").stdout, range(12)))
    assert outcomes == [f"{n}\n".encode() for n in range(12)]


def test_a_child_serves_many_programs_and_is_replaced() -> None:
    def own_parent() -> int:
        ran("1")
        (child,) = launcher._pool._idle
        return child.pid

    first = own_parent()
    assert own_parent() == first
    with ThreadPoolExecutor(1) as other:
        running = other.submit(ran, "while True: pass", limits=Limits(cpu_s=30, wall_s=30.0))
        time.sleep(0.3)
        os.killpg(first, signal.SIGKILL)
        with pytest.raises(SandboxError, match="ended"):
            running.result()
    second = own_parent()
    assert second != first
    os.killpg(second, signal.SIGKILL)
    os.waitid(os.P_PID, second, os.WEXITED | os.WNOWAIT)
    assert ran("print(1)").stdout == b"1\n"


@for_each("names", [("namespaces", "seccomp"), ("landlock", "seccomp")])
def test_folders_of_children_are_removed(names: tuple[str, ...]) -> None:
    policy = policy_of(names)
    assert run(Program("import os; print(os.listdir())"), policy=policy).stdout == b"[]\n"
    (child,) = launcher._pool._idle
    folder = Path(child._empty)
    assert folder.exists() == ("namespaces" not in names)
    launcher.close()
    assert not folder.exists()


def test_a_child_whose_harness_was_killed_removes_its_folder(tmp_path: Path) -> None:
    policy_of(("landlock", "seccomp"))
    code = """
import os, tempfile
from lmms_eval.sandbox.launcher import run
from lmms_eval.sandbox.policy import Policy
from lmms_eval.sandbox.launcher import Program
from tests.sandbox.kit import only
run(Program("1"), policy=Policy(probe=lambda: only(("landlock", "seccomp"))))
assert len(os.listdir(tempfile.gettempdir())) == 1
os.kill(os.getpid(), 9)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], env=environment, check=False)
    assert done.returncode == -9
    deadline = time.monotonic() + 10
    while list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert list(tmp_path.iterdir()) == []


def test_a_forked_process_leaves_the_child_to_its_owner() -> None:
    ran("1")
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = 0 if ran("print(2)").stdout == b"2\n" else 2
            launcher.close()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert ran("print(3)").stdout == b"3\n"


def test_refusal_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "_run", None)
    with pytest.raises(SandboxRefused):
        run(Program("print(1)"), policy=Policy(probe=lambda: only(())))
    with using(Policy(probe=lambda: [Layer("seccomp", True, "")])), pytest.raises(SandboxRefused, match="files"):
        run(Program("print(1)"))


def test_allowed_to_go_without() -> None:
    policy = Policy(True, lambda: only(()))
    assert run(Program("print(1)"), policy=policy).stdout == b"1\n"
    assert run(Program("while True: pass"), Limits(cpu_s=1, wall_s=1.0), policy).reason in ("cpu", "wall")


def test_no_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = Policy(True, lambda: only(()))
    monkeypatch.setattr(launcher, "interpreter", lambda: ["/nowhere/python"])
    with pytest.raises(SandboxError, match="could be started"):
        run(Program("1"), policy=policy)
    monkeypatch.setattr(launcher, "interpreter", lambda: ["/bin/false"])
    with pytest.raises(SandboxError, match="ended with code 1"):
        run(Program("1"), policy=policy)
    assert threading.active_count() >= 1
