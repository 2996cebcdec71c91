"""Code of a task that ends the process: something is said, the exit code is not 0 where Python can see to it, and the
next starts come past it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.workload import text_task
from lmms_eval.engine.watchdog import HUNG, MOST_ENDS
from tests.faults.command import Ended, lmms_eval, results

DOCUMENTS, BAD = 6, 3
UTILS = """
import ctypes
import faulthandler
import os
import signal
import sys
import threading
from os import _exit


def end():
    {end}


def doc_to_text(doc):
    if {where!r} == "prompt" and doc["answer"] == "a{bad}":
        end()
    return doc["question"]


def process(doc, results):
    if {where!r} == "score" and doc["answer"] == "a{bad}":
        end()
    return {{"exact_match": 1.0}}


def aggregate(values):
    if {where!r} == "aggregate":
        end()
    return sum(values) / len(values)


if {where!r} == "import":
    end()
"""
CATCHABLE = {
    "os._exit(0)": "os._exit(0)",
    "os._exit(7)": "os._exit(7)",
    "imported": "_exit(0)",
    "sys.exit(0)": "sys.exit(0)",
    "SystemExit": "raise SystemExit",
    "no Exception": "raise GeneratorExit('ended')",
}
FATAL = {
    "kill": ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    "abort": ("os.abort()", -signal.SIGABRT),
    "crash": ("ctypes.string_at(0)", -signal.SIGSEGV),
    "exit in C": ("ctypes.CDLL(None)._exit(0)", 0),
}


def write(folder: Path, end: str, where: str = "score") -> None:
    text_task(folder, DOCUMENTS, "ends")
    (folder / "utils.py").write_text(UTILS.format(end=end, where=where, bad=BAD))
    with open(folder / "ends.yaml", "a") as file:
        file.write("process_results: !function utils.process\n")
    text = (folder / "ends.yaml").read_text()
    text = text.replace("doc_to_text: question", "doc_to_text: !function utils.doc_to_text")
    (folder / "ends.yaml").write_text(text.replace("aggregation: mean", "aggregation: !function utils.aggregate"))


def start(tmp_path: Path, *more: str) -> Ended:
    words = ("--model", "baseline", "--model_args", "strategy=gold", "--tasks", "ends")
    places = ("--include_path", tmp_path / "tasks", "--output_path", tmp_path / "out")
    return lmms_eval(*words, *places, "--log_samples", *more)


def test_the_task_itself_is_right(tmp_path: Path) -> None:
    write(tmp_path / "tasks", "pass")
    assert start(tmp_path).code == 0
    assert results(tmp_path / "out")["results"]["ends"]["exact_match,none"] == 1.0


@pytest.mark.parametrize("end", CATCHABLE.values(), ids=CATCHABLE)
def test_scoring_that_ends_the_process_is_one_failed_document(tmp_path: Path, end: str) -> None:
    write(tmp_path / "tasks", end)
    ended = start(tmp_path)
    assert ended.code == 3, ended.shown
    assert f"1 of {DOCUMENTS}" in ended.shown and "ends" in ended.out
    outcomes = results(tmp_path / "out")["outcomes"]["ends"]
    assert (outcomes["scored"], outcomes["failed"]) == (DOCUMENTS - 1, 1)


@pytest.mark.parametrize("where", ["prompt", "aggregate", "import"])
@pytest.mark.parametrize("end", ["os._exit(0)", "_exit(0)", "sys.exit(0)"])
def test_no_code_of_a_task_ends_a_run_with_success(tmp_path: Path, where: str, end: str) -> None:
    write(tmp_path / "tasks", end, where)
    ended = start(tmp_path)
    assert ended.code in (1, 2, 3) and ("called" in ended.shown or "SystemExit" in ended.shown), ended
    if "_exit(0)" in end:
        assert "utils.py:" in ended.err and "called os._exit(0)" in ended.err
        assert "internal error" not in ended.shown


def test_a_thread_of_scoring_code_ends_no_run_with_success(tmp_path: Path) -> None:
    write(tmp_path / "tasks", "thread = threading.Thread(target=_exit, args=(0,)); thread.start(); thread.join()")
    ended = start(tmp_path)
    assert ended.code == 1 and "called os._exit(0)" in ended.err


def test_children_by_fork_end_as_they_like(tmp_path: Path) -> None:
    fork = "child = os.fork()\n    if child == 0: os._exit(5)\n    assert os.waitpid(child, 0)[1] >> 8 == 5"
    write(tmp_path / "tasks", fork)
    assert start(tmp_path).code == 0


@pytest.mark.parametrize("how", FATAL)
def test_what_nothing_catches_is_said_and_passed_over_at_last(tmp_path: Path, how: str) -> None:
    end, code = FATAL[how]
    write(tmp_path / "tasks", end)
    for number in range(MOST_ENDS):
        ended = start(tmp_path)
        assert ended.code == code, ended
        assert f'error: task "ends", document {BAD}: the process ended while it scored' in ended.err
        (file,) = (tmp_path / "out").rglob(HUNG)
        told = [json.loads(line) for line in file.read_text().splitlines()]
        assert told == [{"task": "ends", "doc_id": BAD, "ended": True}] * (number + 1)
    ended = start(tmp_path)
    assert ended.code == 3 and "the process ended 2 times while it was scored" in ended.shown, ended.shown
    assert results(tmp_path / "out")["outcomes"]["ends"]["scored"] == DOCUMENTS - 1


def test_an_interrupt_in_the_midst_of_scoring_blames_no_document(tmp_path: Path) -> None:
    write(tmp_path / "tasks", f"open({str(tmp_path / 'here')!r}, 'w'); import time; time.sleep(60)")
    words = [
        "--model",
        "baseline",
        "--model_args",
        "strategy=gold",
        "--tasks",
        "ends",
        "--grace",
        "1",
        "--include_path",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "lmms_eval", *words, str(tmp_path / "tasks"), "--output_path", str(tmp_path / "out")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not (tmp_path / "here").exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=90)
    assert process.returncode == 130, said
    assert not [*(tmp_path / "out").rglob(HUNG)] and "the process ended while" not in said
