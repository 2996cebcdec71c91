from __future__ import annotations

import asyncio
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.task import Answer, Task
from lmms_eval.engine import scoring, stage
from lmms_eval.engine.conversations import AnsweredDocument
from lmms_eval.engine.scoring import Scorer, score_document
from lmms_eval.errors import JournalError
from tests.engine.fakes import FakeTask
from tests.engine.scoring_task import jobs, make, workers

Records = dict[int, dict[str, Any]]


def run(task: Task, work: list[AnsweredDocument], count: int = 1, **options: Any) -> Records:
    """All jobs through a scorer; records by document."""
    records: Records = {}
    scorer = Scorer([task], lambda record: records.update({record["doc_id"]: record}), workers(count), **options)
    try:
        for job in work:
            scorer.submit(job)
        scorer.drain()
    finally:
        scorer.close()
    return records


def ends(records: Records) -> list[str]:
    return [records[number].get("failed", "scored") for number in sorted(records)]


def line(file: Path, text: str) -> str:
    """``FILE:LINE`` of the line of a file that begins with a text."""
    lines = [line.strip() for line in file.read_text().splitlines()]
    return f"{file}:{next(number for number, found in enumerate(lines, start=1) if found.startswith(text))}"


def test_one_bad_document_fails_alone_in_a_worker_process(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    does = ["well", "raise", "print", "read", "sys.exit", "object", "absent", "os._exit", "hang", "well"]
    task = make(tmp_path, does)
    assert task.scoring == "process"
    records = run(task, jobs(task), job_timeout_s=0.5)
    utils = tmp_path / "utils.py"
    assert ends(records) == [
        "scored",
        f"process_results raised KeyError: 'no such column' ({line(utils, 'raise KeyError')})",
        "scored",
        f"process_results raised EOFError: EOF when reading a line ({line(utils, 'input()')})",
        f"process_results raised SystemExit: 0 ({line(utils, 'sys.exit(0)')})",
        "scoring gave a object cannot be written to a journal",
        "scored",
        "scoring did not come back: the scoring process ended with code 5",
        "scoring did not come back: no answer within 0.5 s",
        "scored",
    ]
    assert records[6]["scores"][0]["status"] == "unscored"
    assert "noise" not in capfd.readouterr().out


def test_scoring_in_the_process_and_in_workers_is_the_same(tmp_path: Path) -> None:
    does = ["well", "raise", "print", "sys.exit", "absent", "well"]
    inline, process = make(tmp_path, does, "inline"), make(tmp_path, does)
    one, other = run(inline, jobs(inline)), run(process, jobs(process), 2)
    assert one == other
    assert one[0]["scores"][0]["metrics"]["pair"] == (1, "é")
    assert one[0]["scores"][0]["metrics"]["draw"] != one[5]["scores"][0]["metrics"]["draw"]


def test_without_workers_everything_is_scored_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "ScoringProcess", None)
    task = make(tmp_path, ["well", "raise"])
    utils = tmp_path / "utils.py"
    assert ends(run(task, jobs(task), 0)) == [
        "scored",
        f"process_results raised KeyError: 'no such column' ({line(utils, 'raise KeyError')})",
    ]


def test_a_task_that_a_worker_cannot_build_fails_its_documents_and_says_why(tmp_path: Path) -> None:
    task = make(tmp_path, ["well", "well"])
    (tmp_path / "utils.py").unlink()
    records = run(task, jobs(task))
    assert all("in a scoring process: " in end and "utils" in end for end in ends(records))
    assert len(records) == 2


def test_a_worker_needs_no_data(tmp_path: Path) -> None:
    task = make(tmp_path, ["well", "well"])
    (tmp_path / "rows.jsonl").unlink()
    assert ends(run(task, jobs(task))) == ["scored", "scored"]


def test_failed_answers_are_recorded_without_scoring() -> None:
    task = FakeTask(2)
    job = AnsweredDocument(task, 0, (Answer(None, error="timeout: no answer", input="asked"),))
    assert run(task, [job])[0]["failed"] == "timeout: no answer"
    assert task.scored == []


def test_every_document_is_scored_once_however_many_threads_submit() -> None:
    task = FakeTask(200)
    seen: list[int] = []
    scorer = Scorer([task], lambda record: seen.append(record["doc_id"]))

    def submit(start: int) -> None:
        for number in range(start, 200, 4):
            scorer.submit(AnsweredDocument(task, number, (Answer("answer"),)))

    threads = [threading.Thread(target=submit, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    scorer.drain()
    scorer.close()
    assert sorted(seen) == sorted(task.scored) == list(range(200))


@pytest.mark.parametrize("kind", ["inline", "process"])
def test_a_record_that_cannot_be_written_ends_the_scoring_for_all(tmp_path: Path, kind: str) -> None:
    def full(record: dict[str, Any]) -> None:
        raise JournalError("no space left")

    task = make(tmp_path, ["well"] * 3, kind)
    scorer = Scorer([task], full, workers(2))

    def work() -> None:
        for job in jobs(task):
            scorer.submit(job)
        scorer.drain()

    with pytest.raises(JournalError, match="no space left"):
        work()
    with pytest.raises(JournalError):
        scorer.submit(jobs(task)[0])
    scorer.close()


def test_a_full_queue_holds_the_submitter_back_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "QUEUE_LENGTH", 2)
    go = threading.Event()

    class Slow(FakeTask):
        def score(self, doc_id: int, answers: Any, verdicts: Any = ()) -> Any:
            go.wait(10)
            return super().score(doc_id, answers, verdicts)

    task = Slow(5)
    records: Records = {}
    scorer = Scorer([task], lambda record: records.update({record["doc_id"]: record}))

    def submit() -> None:
        for number in range(5):
            scorer.submit(AnsweredDocument(task, number, (Answer("answer"),)))

    thread = threading.Thread(target=submit)
    assert not scorer.is_behind()
    thread.start()
    thread.join(0.3)
    assert thread.is_alive() and scorer.is_behind()
    go.set()
    thread.join(5)
    scorer.drain()
    scorer.close()
    assert len(records) == 5 and not scorer.is_behind()


def test_closing_does_not_wait_for_a_worker_that_hangs(tmp_path: Path) -> None:
    task = make(tmp_path, ["hang", "well"])
    records: Records = {}
    scorer = Scorer([task], lambda record: records.update({record["doc_id"]: record}), workers(1))
    for job in jobs(task):
        scorer.submit(job)
    deadline = time.monotonic() + 20
    while not (tmp_path / "hangs").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    start = time.monotonic()
    scorer.close()
    assert time.monotonic() - start < 3
    assert records == {}  # what was not scored is no failure: the next start scores it


def test_scoring_that_raises_keeps_what_was_said() -> None:
    record = score_document(AnsweredDocument(FakeTask(3, unscorable=[1]), 1, (Answer("said", input="asked"),)))
    assert re.fullmatch(r"scoring raised ZeroDivisionError: cannot score this \(\S+fakes\.py:\d+\)", record["failed"])
    assert record["answers"][0]["value"] == "said"


class Threads(FakeTask):
    """Notes the thread that scores each document; document ``slow`` takes a while."""

    slow = -1

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.threads: list[str] = []

    def score(self, doc_id: int, *given: Any) -> Any:
        self.threads.append(threading.current_thread().name)
        if doc_id == self.slow:
            time.sleep(0.6)
        return super().score(doc_id, *given)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes half a second is slow: a busy machine may stop a test for shorter times."""
    monkeypatch.setattr(stage, "QUICK_S", 0.4)
    monkeypatch.setattr(stage, "BLOCKED_S", 0.5)


def scored_in_a_loop(task: Threads, **options: Any) -> Records:
    """Submit all documents in an event loop, in two parts, so that the first ones are scored before the others."""
    records: Records = {}
    scorer = Scorer([task], lambda record: records.update({record["doc_id"]: record}), **options)

    async def submit() -> None:
        for doc_id in range(task.size):
            scorer.submit(AnsweredDocument(task, doc_id, (Answer(f"answer {doc_id}"),)))
            while doc_id == 39 and len(records) < 40:
                await asyncio.sleep(0.005)

    try:
        asyncio.run(submit())
        scorer.drain()
    finally:
        scorer.close()
    return records


@pytest.mark.usefixtures("patient")
def test_an_event_loop_scores_by_rules_of_the_package_if_that_is_quick() -> None:
    task, here = Threads(100), threading.current_thread().name
    task.is_scored_by_package = True
    assert sorted(scored_in_a_loop(task)) == list(range(100))
    assert here not in task.threads[:16] and task.threads[-1] == here
    other = Threads(100)  # code of others has its own thread
    assert sorted(scored_in_a_loop(other)) == list(range(100)) and here not in other.threads


@pytest.mark.usefixtures("patient")
def test_a_thread_scores_again_after_a_slow_document_in_the_event_loop() -> None:
    task, here = Threads(100), threading.current_thread().name
    task.is_scored_by_package, task.slow = True, 60
    assert ends(scored_in_a_loop(task)) == ["scored"] * 100
    assert task.threads[60] == here and here not in task.threads[61:]


def test_a_document_that_takes_too_long_in_the_event_loop_fails_alone() -> None:
    class Hangs(Threads):
        def score(self, doc_id: int, *given: Any) -> Any:
            while doc_id == 60:
                time.sleep(0.01)
            return super().score(doc_id, *given)

    task = Hangs(80)
    task.is_scored_by_package = True
    found = ends(scored_in_a_loop(task, job_timeout_s=0.3))
    assert found[60] == "scoring took more than 0.3 s and was ended" and found.count("scored") == 79
