from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.engine.records import answer_record
from lmms_eval.engine.scoring import ScoringProcess
from lmms_eval.processes import ChildError
from lmms_eval.storage import codec
from tests.engine.scoring_task import ANSWER, MODULE, make

ROOT = Path(__file__).parents[2]
PARENT = """
import sys
from pathlib import Path
from tests.engine.scoring_task import jobs, make, workers
from lmms_eval.engine.scoring import Scorer

task = make(Path(sys.argv[1]), ["hang"])
scorer = Scorer([task], print, workers(1))
scorer.submit(jobs(task)[0])
scorer.drain()
"""


def job(doc_id: int) -> dict[str, Any]:
    return {"task": "probe", "doc_id": doc_id, "answers": [answer_record(ANSWER)]}


def record(line: bytes) -> dict[str, Any]:
    made: dict[str, Any] = codec.loads(line)
    return made


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(condition: Any, seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(condition())


def test_jobs_are_answered_and_the_end_of_input_ends_the_process(tmp_path: Path) -> None:
    worker = ScoringProcess(MODULE, {"probe": make(tmp_path, ["well", "raise"]).spec()})
    assert record(worker.score(job(0), 10))["scores"][0]["metrics"]["acc"] == 1.0
    assert "KeyError" in record(worker.score(job(1), 10))["failed"]
    start = time.monotonic()
    worker.close()
    assert time.monotonic() - start < 1.5
    assert not is_alive(worker.pid)


def test_the_time_limit_is_for_the_scoring_not_for_the_start(tmp_path: Path) -> None:
    worker = ScoringProcess(MODULE, {"probe": make(tmp_path, ["well", "hang"]).spec()})
    try:
        assert "scores" in record(worker.score(job(0), 0.2))  # an interpreter does not start in 0.2 s on a busy machine
        with pytest.raises(ChildError, match=r"no answer within 0\.2 s"):
            worker.score(job(1), 0.2)
    finally:
        worker.kill()
        worker.close()
    assert not is_alive(worker.pid)


@pytest.mark.parametrize(("verbosity", "warnings"), [("INFO", 1), ("ERROR", 0)])
def test_the_level_of_its_log_is_handed_over(
    verbosity: str, warnings: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VERBOSITY", "CRITICAL")  # of the parent process
    worker = ScoringProcess(MODULE, {"probe": make(tmp_path, ["warn"]).spec()}, verbosity)
    assert "scores" in record(worker.score(job(0), 10))
    worker.close()
    assert capfd.readouterr().err.count("the answer is odd") == warnings


def test_a_process_that_was_killed_is_noticed(tmp_path: Path) -> None:
    worker = ScoringProcess(MODULE, {"probe": make(tmp_path, ["well"]).spec()})
    worker.score(job(0), 10)
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(ChildError, match="ended with code -9"):
        worker.score(job(0), 10)
    worker.close()


def test_pipes_beyond_the_first_thousand_files_work(tmp_path: Path) -> None:
    """An API client with many connections has them all open before the first document is scored."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1300:
        pytest.skip(f"this system allows {hard} open files only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1300), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        worker = ScoringProcess(MODULE, {"probe": make(tmp_path, ["well"]).spec()})
        assert "scores" in record(worker.score(job(0), 10))
        worker.close()
    finally:
        for handle in opened:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks processes up in /proc")
def test_a_worker_in_the_middle_of_a_job_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], cwd=ROOT, stdout=subprocess.DEVNULL)
    hangs = tmp_path / "hangs"
    assert wait_for(lambda: (hangs.exists() and hangs.read_text()) or parent.poll() is not None)
    worker = int(hangs.read_text())
    assert is_alive(worker)
    parent.kill()
    parent.wait()
    assert wait_for(lambda: not is_alive(worker), 10)


def test_a_job_carries_its_document(tmp_path: Path) -> None:
    task = make(tmp_path, ["well"])
    worker = ScoringProcess(MODULE, {"probe": task.spec()})
    try:
        document = {**task.documents.stored(0), "answer": "another"}
        scored = record(worker.score({**job(0), "document": document}, 60))
    finally:
        worker.close()
    assert scored["scores"][0]["metrics"]["acc"] == 0.0
