from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.engine.conversations import AnsweredDocument
from lmms_eval.engine.watchdog import HUNG, ScoringTimeout, ScoringWatch, hung_documents
from lmms_eval.storage.run_folder import RunFolder
from tests.engine.fakes import FakeTask
from tests.engine.scoring_task import ANSWER, jobs, make

LIMIT_S = 0.4
SCRIPT = """
import json, sys
from pathlib import Path
from lmms_eval.engine.scoring import Scorer
from tests.engine.scoring_task import jobs, make

folder, limit, *does = sys.argv[1:]
def keep(record):  # called by two threads: print would write the end of a line by itself
    sys.stdout.write(json.dumps([record["doc_id"], record.get("failed", "scored")]) + "\\n")
    sys.stdout.flush()

task = make(Path(folder) / "task", does, "inline")
scorer = Scorer([task], keep, job_timeout_s=float(limit), folder=Path(folder))
for job in jobs(task):
    scorer.submit(job)
scorer.drain()
scorer.close()
"""


def start(folder: Path, *does: str, limit_s: float = LIMIT_S) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder), str(limit_s), *does],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip


def run(folder: Path, *does: str) -> tuple[int, dict[int, str], str]:
    """Exit code, outcome of each document, and output."""
    process = start(folder, *does)
    output, said = process.communicate(timeout=60)
    return process.returncode, dict(json.loads(line) for line in output.splitlines()), said


def test_a_loop_of_python_is_one_failed_document(tmp_path: Path) -> None:
    code, ends, said = run(tmp_path, "well", "hang", "well", "catch", "well")
    ended = f"scoring took more than {LIMIT_S:g} s and was ended"
    assert ends == {0: "scored", 1: ended, 2: "scored", 3: ended, 4: "scored"}
    assert (code, said) == (0, "") and not (tmp_path / HUNG).exists()


@pytest.mark.parametrize("does", ["regex", "catch all"])
def test_what_cannot_be_ended_ends_the_run_and_is_passed_over_by_the_next(tmp_path: Path, does: str) -> None:
    begun = time.monotonic()
    code, ends, said = run(tmp_path, "well", does, "well")
    assert time.monotonic() - begun < 30
    assert (code, ends) == (-signal.SIGKILL, {0: "scored"})
    assert said.startswith('error: task "probe", document 1: scoring took more than 0.4 s and could not be ended')
    assert "Start the same command again" in said and said.count("\n") == 1
    assert json.loads((tmp_path / HUNG).read_text()) == {"task": "probe", "doc_id": 1}
    code, ends, said = run(tmp_path, "well", does, "well")
    assert (code, said) == (0, "")
    assert ends[0] == ends[2] == "scored" and "hung in an earlier start" in ends[1] and str(tmp_path / HUNG) in ends[1]


def test_a_process_that_was_stopped_for_a_while_goes_on(tmp_path: Path) -> None:
    process = start(tmp_path, "well", "hang", "well", limit_s=2.0)
    assert process.stdout is not None
    assert "scored" in process.stdout.readline()
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(1.6)
    os.kill(process.pid, signal.SIGCONT)
    output, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "")
    assert "was ended" in output.splitlines()[0] and "scored" in output.splitlines()[1]


def test_what_hung_is_remembered_when_a_run_begins_anew(tmp_path: Path) -> None:
    (tmp_path / HUNG).write_text('{"task":"t","doc_id":3}\n{"task":"t"}\n{"task"\n')
    (tmp_path / "scores-0.jsonl").write_text("")
    RunFolder(tmp_path).clear()
    assert [path.name for path in tmp_path.iterdir()] == [HUNG]
    assert list(hung_documents(tmp_path)) == [("t", 3)]
    assert hung_documents(None) == hung_documents(tmp_path / "elsewhere") == {}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # one that strikes in a callback
def test_an_end_hits_the_scoring_and_nothing_else() -> None:
    """Another thread ends documents at any moment, also while the watch begins and closes them."""
    job, done = AnsweredDocument(FakeTask(1), 0, (ANSWER,)), threading.Event()
    with ScoringWatch(60.0) as watch:

        def disturb() -> None:
            raised_at = 0.0
            while not done.is_set():
                with watch._lock:
                    is_lost = time.monotonic() > raised_at + 1.0
                    if watch._job is not None and (not watch._has_raised or is_lost):
                        watch._has_raised, raised_at = True, time.monotonic()
                        watch._raise_there(ScoringTimeout)

        disturber = threading.Thread(target=disturb)
        disturber.start()
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            records = [watch.call(job, lambda _: {"total": sum(n for n in range(50))}) for _ in range(3000)]
            records.append(watch.call(job, lambda _: {"total": sum(n for n in range(10**9))}))
        finally:
            sys.setswitchinterval(interval)
            done.set()
            disturber.join()
    assert all(record == {"total": 1225} or "was ended" in record["failed"] for record in records)
    assert "failed" in records[-1] and any("total" in record for record in records)


def test_an_end_that_is_swallowed_comes_again(tmp_path: Path) -> None:
    """The interpreter ignores an exception in a destructor: the first one, not the second."""
    task, swallowed = make(tmp_path / "task", ["well"], "inline"), 0

    class Swallows:
        def __del__(self) -> None:
            nonlocal swallowed
            try:
                sum(n for n in range(10**10))
            except ScoringTimeout:
                swallowed += 1

    def score(_: AnsweredDocument) -> dict[str, Any]:
        thing = Swallows()
        del thing
        return {"total": sum(n for n in range(10**10))}

    with ScoringWatch(2.0) as watch:  # with a shorter limit, a busy machine may get no sign of life in time
        record = watch.call(jobs(task)[0], score)
    assert swallowed == 1 and "was ended" in record["failed"]


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    task = make(tmp_path / "task", ["well"], "inline")
    with ScoringWatch(5.0) as watch:
        assert watch.call(jobs(task)[0], lambda job: {"doc_id": job.doc_id}) == {"doc_id": 0}
        shell, (state,) = watch._shell, tmp_path.glob("lmms-eval-scoring-*")
        assert '"probe"\n0\n' in state.read_text()
    assert shell.returncode == 0 and not state.exists()
