"""Progress in the events of a real server beside the journals of the run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from benchmarks.workload import text_task
from lmms_eval.results.follow import FollowedRun, Snapshot
from lmms_eval.server.events import MOST_JOBS, MOST_LETTERS, MOST_TASKS, JobProgress, JobsProgress, Progress
from lmms_eval.storage import codec
from lmms_eval.storage.lines import unsealed
from tests.server.process import ServerProcess, running_server

DOCUMENTS, FAILING = 40, 6
UTILS = f"""
def process(doc, results):
    number = int(doc["answer"][1:])
    if number < {FAILING}:
        raise ValueError("no scale fits")
    return {{"exact_match": float(number % 2)}}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("progress")
    text_task(folder / "tasks", DOCUMENTS)
    text_task(folder / "tasks", DOCUMENTS, "uneven")
    (folder / "tasks" / "utils.py").write_text(UTILS)
    with open(folder / "tasks" / "uneven.yaml", "a") as file:
        file.write("process_results: !function utils.process\n")
    words = ("--include_path", str(folder / "tasks"), "--plugins", "faulty_plugin", "--grace", "3")
    with running_server(folder / "server", *words, PYTHONPATH=str(Path(__file__).parent)) as running:
        yield running


def _progress(server: ServerProcess, job: str) -> Iterator[dict[str, Any]]:
    """Read what the events of a job tell of its progress, until it has ended."""
    with server.client.stream("GET", f"/jobs/{job}/events") as answer:
        kind = ""
        for line in answer.iter_lines():
            kind = line[7:] if line.startswith("event: ") else kind
            if kind == "progress" and line.startswith("data: "):
                yield json.loads(line[6:])


def _record(server: ServerProcess, job: str) -> Path:
    (record,) = (path.parent for path in (server.folder / "jobs" / job / "output").glob("**/.runs/*/run.json"))
    return record


def _journal(record: Path) -> list[dict[str, Any]]:
    lines = [line for path in record.glob("scores-*.jsonl") for line in path.read_bytes().splitlines(keepends=True)]
    return [codec.loads(content) for line in lines if (content := unsealed(line)) is not None]


def test_progress_is_what_the_journals_hold(server: ServerProcess) -> None:
    job = server.submit(model="faulty", tasks=["uneven"], error_budget=1.0, order="random")
    *_, last = _progress(server, job)
    assert server.job(job)["status"] == "completed", server.job(job)
    records = _journal(_record(server, job))
    failed = {record["doc_id"] for record in records if "failed" in record}
    scored = [record["scores"][0]["metrics"]["exact_match"] for record in records if "failed" not in record]
    assert (len(failed), len(scored)) == (FAILING, DOCUMENTS - FAILING)
    assert (last["requested"], last["done"]) == (DOCUMENTS, DOCUMENTS)
    assert (last["scored"], last["failed"]) == (len(scored), len(failed))
    ((reason, count),) = last["reasons"]
    assert ("no scale fits" in reason, count) == (True, FAILING)
    (task,) = last["tasks"]
    assert (task["name"], task["requested"], task["done"]) == ("uneven", DOCUMENTS, DOCUMENTS)
    score = task["score"]
    assert (score["n"], score["of"]) == (DOCUMENTS, DOCUMENTS)
    assert score["value"] == pytest.approx(sum(scored) / len(scored))
    assert score["low"] < score["value"] < score["high"]
    followed = FollowedRun(_record(server, job))
    while not followed.is_read:
        followed.look()
    viewed = json.loads(json.dumps(Progress(followed.snapshot()).content(str)))
    assert {name: last[name] for name in viewed if "rate" not in name} == {
        name: viewed[name] for name in viewed if "rate" not in name
    }


def test_progress_of_a_run_that_goes_on(server: ServerProcess) -> None:
    job = server.submit(model="faulty", tasks=["bench_text"], model_args={"mode": "hang"})
    for told in _progress(server, job):
        if told["is_going"]:
            assert (told["state"], told["requested"], told["done"]) == ("running", DOCUMENTS, 0)
            server.client.delete(f"/jobs/{job}")
    assert server.job(job)["status"] == "cancelled"


def test_what_is_told_is_bounded_and_cleaned(server: ServerProcess, tmp_path: Path) -> None:
    assert JobProgress().look([]).content(str) == {}
    snapshot = JobProgress().look([tmp_path / "none"]).snapshot
    assert snapshot is not None and snapshot.state == "deleted"
    job = server.submit(model="faulty", tasks=["bench_text"], limit=2)
    server.wait(job)
    (found,) = [JobProgress().look([_record(server, job)]).snapshot]
    assert found is not None
    many: Snapshot = structs.replace(found, tasks=[*found.tasks] * (MOST_TASKS + 3), reasons=[("/etc/x " * 100, 1)])
    told = Progress(many).content(lambda text: text.replace("/etc/", ""))
    assert (len(told["tasks"]), told["tasks_left_out"]) == (MOST_TASKS, 3)
    assert told["reasons"] == [(("x " * 100)[:MOST_LETTERS], 1)]
    assert "processes" not in told


def test_jobs_beyond_the_number_that_is_kept_are_forgotten(server: ServerProcess) -> None:
    job = server.submit(model="faulty", tasks=["bench_text"], limit=2)
    server.wait(job)
    progress = JobsProgress()
    first = progress.look(job, [_record(server, job)]).snapshot
    assert first is not None and progress.look(job, []).snapshot == first  # followed still
    for number in range(MOST_JOBS):
        progress.look(f"job {number}", [])
    assert progress.look(job, []).snapshot is None
    assert progress.look(job, [_record(server, job)]).snapshot == first
