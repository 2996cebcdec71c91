import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.metrics.guard import GuardedProcess, JobError, LimitExceeded
from lmms_eval.tasks.megabench.metrics.latex_process import NEEDS, WORKER


@pytest.fixture(scope="module")
def guard() -> Iterator[GuardedProcess]:
    guard = GuardedProcess(WORKER, NEEDS)
    yield guard
    guard.close()


def test_answers_come_from_one_child(guard: GuardedProcess) -> None:
    assert guard.call("latex_text", r"\frac12", limit=10) == "1/2"
    child = guard.child_pid
    assert guard.call("latex_equal", "x+1", "1+x", limit=10) == "equal"
    assert guard.call("latex_equal", "x+1", "x", limit=10) == "different"
    assert guard.call("latex_equal", "}{", "x", limit=10) == "unparsed"
    assert guard.child_pid == child != os.getpid()


def test_unreadable_text_has_no_printed_form(guard: GuardedProcess) -> None:
    assert guard.call("latex_text", "[1,2]", limit=10) is None
    assert guard.call("latex_text", "(" * 2000, limit=10) is None


def test_an_error_of_the_job_is_named(guard: GuardedProcess) -> None:
    with pytest.raises(JobError, match="RecursionError"):
        guard.call("latex_equal", "(" * 2000, "x", limit=10)
    with pytest.raises(JobError, match="KeyError"):
        guard.call("no such job", limit=10)
    assert guard.call("latex_text", "5", limit=10) == "5"


def test_a_slow_job_is_killed_and_the_next_one_gets_a_new_child(guard: GuardedProcess) -> None:
    guard.call("latex_text", "5", limit=10)
    before = guard.child_pid
    assert before is not None
    start = time.monotonic()
    with pytest.raises(LimitExceeded):
        guard.call("latex_text", "word " * 1500, limit=0.3)
    assert time.monotonic() - start < 2
    assert not _alive(before)
    assert guard.call("latex_text", "5", limit=10) == "5"
    assert guard.child_pid != before


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("9^{9^{9^{9}}}", "1"),
        ("2^{-9^{9^{9}}}", "0"),
        (r"\log(9^{9^{9}})", "x"),
        ("99999999!", "1"),
        ("(x+1)^{99999999}", "x"),
        ("10^{10^{10}}+1", "10^{10^{10}}"),
    ],
)
def test_astronomical_numbers_are_not_computed(guard: GuardedProcess, first: str, second: str) -> None:
    guard.call("latex_text", "5", limit=10)
    start = time.monotonic()
    assert guard.call("latex_equal", first, second, limit=15) == "unparsed"
    assert time.monotonic() - start < 2


def test_children_are_recycled() -> None:
    guard = GuardedProcess(WORKER, NEEDS, calls_per_child=2)
    try:
        children = []
        for _ in range(3):
            guard.call("latex_text", "1", limit=10)
            children.append(guard.child_pid)
        assert children[0] == children[1] != children[2]
        assert not _alive(children[0])
    finally:
        guard.close()
    assert guard.child_pid is None


def test_the_child_ends_with_its_parent(tmp_path: Path) -> None:
    program = (
        "from lmms_eval.tasks.megabench.metrics.latex_process import _guard\n"
        "import os\n"
        "_guard.call('latex_text', '1', limit=10)\n"
        "print(_guard.child_pid, flush=True)\n"
        "os._exit(1)\n"  # no clean-up
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    ).stdout
    child = int(output)
    deadline = time.monotonic() + 10
    while _alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(child)


def test_a_child_that_cannot_start_is_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotEvaluated, match=rf"did not start: is {NEEDS} installed"):
        GuardedProcess("lmms_eval.no_such_module", NEEDS).call("latex_text", "1", limit=1)
    with pytest.raises(NotEvaluated, match=r"ended with code 1: .*No module named lmms_eval\.no_such_module"):
        GuardedProcess("lmms_eval.no_such_module", NEEDS).call("latex_text", "1", limit=1)
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(NotEvaluated, match="could be started"):
        GuardedProcess(WORKER, NEEDS).call("latex_text", "1", limit=1)


def _alive(pid: int | None) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


WORDS_OF_TEST = """
from lmms_eval.metrics.guarded_worker import run


def loud(text: str) -> str:
    print("noise", flush=True)
    return text.upper()


run({"loud": loud}, lambda: None)
"""


def test_what_a_job_prints_is_no_reply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "words_of_test.py").write_text(WORDS_OF_TEST)
    guard = GuardedProcess("words_of_test", "nothing")
    try:
        assert [guard.call("loud", text, limit=10) for text in ("a", "b")] == ["A", "B"]
    finally:
        guard.close()
