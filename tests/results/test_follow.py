"""A run that is followed by its journals: snapshots, and what may happen to it meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import orjson
import pytest

from lmms_eval.engine.live import Vitals
from lmms_eval.results.follow import Finished, FollowedRun
from lmms_eval.utils.records import to_dict
from tests.results.records import Record


def test_a_snapshot_tells_what_the_journal_holds(tmp_path: Path) -> None:
    record = Record(tmp_path / "out", 40)
    seen: list[Finished] = []
    run = FollowedRun(record.path, seen.append, budget_s=60)
    assert run.look()
    for place, doc_id in enumerate(record.order[:10]):
        record.score(doc_id, float(place % 2))
    record.fail(record.order[10])
    assert run.look()
    found = run.snapshot()
    assert (found.state, found.requested, found.done, found.scored, found.failed) == ("running", 40, 11, 10, 1)
    assert (found.tokens_in, found.tokens_out, found.reasons) == (100, 20, [("timeout: no answer", 1)])
    (task,) = found.tasks
    assert task.score is not None
    assert (task.done, task.score.n, task.score.of, task.score.value) == (11, 11, 40, 0.5)
    assert task.score.low is not None
    assert task.score.low < 0.5
    assert [(one.doc_id, one.ending.status, one.rows[0]["doc_id"]) for one in seen] == [
        (doc_id, "failed" if place == 10 else "scored", doc_id) for place, doc_id in enumerate(record.order[:11])
    ]
    assert json.loads(orjson.dumps(to_dict(found)))["done"] == 11  # it can be sent


def test_a_failure_takes_the_place_of_no_score_and_a_score_that_of_a_failure(tmp_path: Path) -> None:
    record = Record(tmp_path / "out", 40)
    seen: list[Finished] = []
    run = FollowedRun(record.path, seen.append, budget_s=60)
    record.fail(3)
    record.score(5, 1.0)
    run.look()
    record.score(3, 1.0)
    record.fail(5)
    run.look()
    found = run.snapshot()
    assert (found.done, found.scored, found.failed, found.reasons, found.tokens_in) == (2, 2, 0, [], 20)
    assert [(one.doc_id, one.before and one.before.status) for one in seen] == [(3, None), (5, None), (3, "failed")]


def test_scores_by_other_settings_do_not_count(tmp_path: Path) -> None:
    record = Record(tmp_path / "out", 40)
    run = FollowedRun(record.path, budget_s=60)
    for doc_id in range(6):
        record.score(doc_id, 0.0)
    run.look()
    record.score(0, 1.0, rank=1, key="two")
    os.utime(record.path / "scores-0.jsonl", (1, 1))
    run.look()
    assert (run.key, run.snapshot().done) == ("two", 1)


def test_a_run_that_is_begun_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    record = Record(tmp_path / "out", 40)
    run = FollowedRun(record.path, budget_s=60)
    for doc_id in range(5):
        record.score(doc_id, 1.0)
    run.look()
    begun = run.begun
    record.folder.clear()
    record.write_state(date="2026-01-02")
    record.score(7, 0.0)
    run.look()
    assert (run.snapshot().done, run.begun) == (1, begun + 1)


def test_the_state_is_that_of_record_and_process(tmp_path: Path) -> None:
    record = Record(tmp_path / "out", 40)
    record.score(1, 1.0)
    run = FollowedRun(record.path, budget_s=60)
    assert run.look()
    assert run.look()  # time passes, so the rates change
    assert run.snapshot().is_going
    record.folder.release()
    assert run.look()
    assert (run.snapshot().state, run.snapshot().is_going) == ("interrupted", False)
    assert not run.look()
    record.write_state("complete")
    assert run.look()
    assert run.snapshot().state == "complete"
    shutil.rmtree(record.path)
    assert run.look()
    assert (run.snapshot().state, run.snapshot().done) == ("deleted", 1)


def test_all_processes_of_a_launch_count(tmp_path: Path) -> None:
    record = Record(tmp_path / "out", 40)
    for doc_id in range(8):
        record.score(doc_id, 1.0, rank=doc_id % 2)
    run = FollowedRun(record.path, budget_s=60)
    counts = {"in_flight": 3, "concurrency": 4, "done": 8}
    with Vitals(record.path, 0, lambda: counts), Vitals(record.path, 1, lambda: counts):
        while len([*record.path.glob("live-*.json")]) < 2:
            time.sleep(0.01)
        run.look()
        found = run.snapshot()
    assert (found.done, found.in_flight, found.concurrency) == (8, 6, 8)
    assert [one.pid for one in found.processes] == [os.getpid()] * 2
    memory = found.processes[0].memory
    assert memory is not None
    assert memory > 1 << 20


@pytest.mark.parametrize(("taken", "limit"), [(4, None), (2, 2)])
def test_more_requests_than_its_concurrency_are_not_shown_as_a_limit(
    tmp_path: Path, taken: int, limit: int | None
) -> None:
    record = Record(tmp_path / "out", 2)
    run = FollowedRun(record.path, budget_s=60)
    with Vitals(record.path, 0, lambda: {"in_flight": taken, "concurrency": 2, "done": 0}):
        while not [*record.path.glob("live-*.json")]:
            time.sleep(0.01)
        run.look()
        found = run.snapshot()
    assert (found.in_flight, found.concurrency, found.rate_overall) == (taken, limit, None)


def test_signs_of_a_killed_process_do_not_count(tmp_path: Path) -> None:
    record = Record(tmp_path / "out", 40)
    for rank, written in enumerate((1000.0, 900.0, 999.0)):
        told = {"time": written, "started": 900.0, "pid": rank, "host": "here", "in_flight": 2}
        (record.path / f"live-{rank}.json").write_text(json.dumps(told))
    (record.path / "live-3.json").write_text('{"time": ')
    (record.path / "live-4.json").write_text('{"time": "now", "pid": []}')
    run = FollowedRun(record.path, budget_s=60)
    run.look()
    found = run.snapshot()
    assert ([one.pid for one in found.processes], found.in_flight) == ([0, 2], 4)
    record.folder.release()
    run.look()
    assert (len(run.snapshot().processes), run.snapshot().in_flight) == (0, None)


def test_a_look_ends_after_its_time_and_the_next_one_goes_on(tmp_path: Path) -> None:
    record = Record(tmp_path / "out", 40)
    for doc_id in range(3):
        record.score(doc_id, 1.0)
    run = FollowedRun(record.path, budget_s=0)
    done = []
    while not run.is_read:
        run.look()
        done.append(run.snapshot().done)
    assert done == [1, 2, 3, 3]
