"""A list of jobs in which bits have flipped: no job is lost, none changes in silence, and the server answers."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from lmms_eval.errors import JobStoreError
from lmms_eval.server.folder import JobFolder
from lmms_eval.server.store import _VERSION, DATABASE, Job, JobEnding, JobStore, open_store
from tests.server.process import running_server

COLUMNS = (
    "job_id", "state", "request", "folder", "created_at", "started_at", "completed_at", "result", "error", "gpus",
    "is_cancelled", "submission_key", "seal", "number",
)  # fmt: skip


def _write(store: JobStore, jobs: Path, number: int) -> None:
    """A job with its folder, as the scheduler leaves them: each third waits, each third has failed."""
    name = f"job-{number:04d}"
    folder = JobFolder(jobs / name)
    folder.path.mkdir(parents=True)
    request = {"model": "m", "tasks": ["t"], "limit": number, "system_instruction": f"ünïcode {number} " * 8}
    created = f"2026-01-01T00:{number // 60:02d}:{number % 60:02d}+00:00"
    note: dict[str, Any] = {"job_id": name, "state": "queued", "request": request, "created_at": created}
    store.add(name, request, str(folder.path), created, f"key-{number}")
    if number % 3:
        store.claim(name, ())
        result = {"m": {"results": f"{folder.path}/output/m/20260101_000000_results.json", "samples": []}}
        ending = JobEnding("completed", result) if number % 3 == 1 else JobEnding("failed", None, "why\n" * 20)
        store.finish(name, ending)
        job = store.get(name)
        assert job is not None
        note |= {key: getattr(job, key) for key in ("state", "started_at", "completed_at", "result", "error")}
    folder.write(folder.job_file, {**note, "key": f"key-{number}"})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A server's folder with 30 jobs."""
    folder = tmp_path_factory.mktemp("damage") / "server"
    folder.mkdir()
    store = open_store(folder, folder / "jobs")
    for number in range(30):
        _write(store, folder / "jobs", number)
    store.close()
    return folder


def _jobs(store: JobStore) -> dict[str, Job]:
    found = store.of_state("queued", "running", "completed", "failed", "cancelled")
    return {job.job_id: structs.replace(job, number=0) for job in found}


def _opened(folder: Path, jobs: Path) -> dict[str, Job]:
    store = open_store(folder, jobs)
    try:
        found = _jobs(store)
        assert found.keys() == {name for name in found if store.get(name) is not None}
        assert store.counts() == {
            state: sum(job.state == state for job in found.values()) for state in {job.state for job in found.values()}
        }
        for number in range(30):
            by_key = store.of_key(f"key-{number}")
            assert by_key is not None and by_key.job_id == f"job-{number:04d}"
        assert _claims_all(store) == sorted(name for name, job in found.items() if job.state == "queued")
    finally:
        store.close()
    return found


def _claims_all(store: JobStore) -> list[str]:
    claimed = []
    while (job := store.first_queued()) is not None:
        assert store.claim(job.job_id, ())
        claimed.append(job.job_id)
    return claimed


def _copy(whole: Path, folder: Path) -> Path:
    folder.mkdir()
    shutil.copy(whole / DATABASE, folder / DATABASE)
    return folder / DATABASE


def test_no_flipped_bit_changes_a_job(whole: Path, tmp_path: Path) -> None:
    """Bits all over the file, its head above all, one at a time."""
    store = JobStore(_copy(whole, tmp_path / "as_it_was"))
    expected = _jobs(store)
    store.close()
    assert len(expected) == 30
    size = (whole / DATABASE).stat().st_size
    source = random.Random(7)
    places = [*range(0, 100, 3), 18, 60, 63, *(source.randrange(size) for _ in range(60))]
    for number, place in enumerate(places):
        file = _copy(whole, tmp_path / str(number))
        content = bytearray(file.read_bytes())
        content[place] ^= 1 << source.randrange(8)
        file.write_bytes(content)
        assert _opened(file.parent, whole / "jobs") == expected, place
        shutil.rmtree(file.parent)


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("value", ["", "{", "queued", 7, None, b"\xff\xfe", "x" * 5000], ids=repr)
def test_no_changed_column_changes_a_job(whole: Path, tmp_path: Path, column: str, value: object) -> None:
    file = _copy(whole, tmp_path / "server")
    connection = sqlite3.connect(file)
    expected = dict(_raw(connection))
    try:
        with connection:
            connection.execute(f"UPDATE jobs SET {column} = ? WHERE job_id = 'job-0007'", (value,))
    except sqlite3.IntegrityError:
        return  # the table does not take it
    connection.close()
    found = _opened(file.parent, whole / "jobs")
    assert {name: job.request["limit"] for name, job in found.items()} == expected


def _raw(connection: sqlite3.Connection) -> list[tuple[str, int]]:
    rows = connection.execute("SELECT job_id, request FROM jobs").fetchall()
    return [(name, json.loads(request)["limit"]) for name, request in rows]


def test_rows_that_vanish_come_back(whole: Path, tmp_path: Path) -> None:
    file = _copy(whole, tmp_path / "server")
    with sqlite3.connect(file) as connection:
        connection.execute("DELETE FROM jobs WHERE number % 2")
    assert len(_opened(file.parent, whole / "jobs")) == 30


def test_jobs_that_left_the_list_stay_away(whole: Path, tmp_path: Path) -> None:
    file = _copy(whole, tmp_path / "server")
    store = JobStore(file)
    store.drop_ended(5)
    left = _jobs(store)
    store.close()
    assert len(left) == 15
    store = open_store(file.parent, whole / "jobs")
    assert _jobs(store) == left
    store.close()


def test_a_list_of_the_first_version_is_taken_over(whole: Path, tmp_path: Path) -> None:
    file = _copy(whole, tmp_path / "server")
    store = JobStore(file)
    expected = _jobs(store)
    store.close()
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TABLE facts")
        connection.execute("ALTER TABLE jobs DROP COLUMN seal")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    for _ in range(2):
        store = JobStore(file)
        assert _jobs(store) == expected
        store.close()


def test_a_row_that_is_damaged_while_the_server_runs_is_passed_over_and_named(
    whole: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = _copy(whole, tmp_path / "server")
    store = JobStore(file)
    first = store.first_queued()
    assert first is not None
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE jobs SET request = '{' WHERE job_id = ?", (first.job_id,))
    for _ in range(3):
        second = store.first_queued()
        assert second is not None and second.job_id != first.job_id
        assert len(_jobs(store)) == 29 and store.get(first.job_id) is None
    assert caplog.text.count(f"{first.job_id!r} in the list is damaged: restart the server") == 1
    with pytest.raises(JobStoreError, match="is damaged"):
        store.claim(first.job_id, ())
    store.close()


def test_a_job_that_nothing_tells_stays_in_the_list_as_failed(tmp_path: Path) -> None:
    """A real server: one job with a damaged row and a damaged folder, one with a damaged row alone."""
    folder = tmp_path / "server"
    folder.mkdir()
    store = open_store(folder, folder / "jobs")
    for number in (1, 2, 4):
        _write(store, folder / "jobs", number)
    store.close()
    (folder / "jobs" / "job-0001" / "job.json").write_text("{")
    with sqlite3.connect(folder / DATABASE) as connection:
        connection.execute("UPDATE jobs SET request = 'x', state = 'compleue' WHERE job_id != 'job-0004'")
    connection.close()
    with running_server(folder) as server:
        told = {number: server.job(f"job-000{number}") for number in (1, 2, 4)}
        assert [told[number]["status"] for number in (1, 2, 4)] == ["failed", "failed", "completed"]
        assert "does not hold the request" in told[1]["error"] and told[2]["error"].startswith("why")
        assert told[2]["request"]["limit"] == 2
        for path in ("/queue", "/health", "/metrics", "/jobs/job-0001/log"):
            assert server.client.get(path).status_code == 200, path
        assert server.client.get("/jobs/job-0001/results").status_code == 404
    assert "job job-0001: its entry in the list is damaged" in server.log


def test_a_list_of_a_newer_version_is_left_alone(whole: Path, tmp_path: Path) -> None:
    file = _copy(whole, tmp_path / "server")
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TABLE facts")
        connection.execute(f"PRAGMA user_version = {_VERSION + 1}")
    connection.close()
    before = file.read_bytes()
    with pytest.raises(JobStoreError, match="newer version"):
        open_store(file.parent, whole / "jobs")
    assert file.read_bytes() == before
