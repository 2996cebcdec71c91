from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from lmms_eval.errors import JobStoreError, RepeatedKeyError
from lmms_eval.server.store import JobEnding, JobStore


@pytest.fixture
def store(tmp_path: Path):
    opened = JobStore(tmp_path / "jobs.sqlite")
    yield opened
    opened.close()


def _add(store: JobStore, name: str, key: str | None = None, **request):
    return store.add(name, {"model": "m", **request}, f"/{name}", "2026-01-01T00:00:00+00:00", key)


def test_jobs_wait_in_the_order_of_their_submission(store):
    assert [_add(store, name).position for name in "abc"] == [0, 1, 2]
    assert store.claim("a", ("1",))
    assert not store.claim("a", ("1",))
    assert store.get("a").gpus == ("1",)
    assert store.first_queued().job_id == "b"
    assert [store.position(store.get(name)) for name in "abc"] == [0, 0, 1]


def test_a_job_ends_once(store):
    _add(store, "a")
    assert not store.finish("a", JobEnding("completed"))
    store.claim("a", ())
    assert store.cancel("a").state == "running"
    assert store.get("a").is_cancelled
    assert store.finish("a", JobEnding("failed", {"m": {}}, "why"))
    assert not store.finish("a", JobEnding("completed"))
    assert (store.get("a").state, store.get("a").result, store.get("a").error) == ("failed", {"m": {}}, "why")
    assert store.cancel("a").state == "failed"
    assert store.cancel("nobody") is None


def test_a_key_finds_its_submission_again(store):
    first = _add(store, "a", "k", tasks=["t"])
    again = _add(store, "b", "k", tasks=["t"])
    assert (again.job.job_id, again.is_new, first.is_new) == ("a", False, True)
    with pytest.raises(RepeatedKeyError, match="job a"):
        _add(store, "c", "k", tasks=["u"])
    assert store.get("b") is None


def test_what_was_stored_is_there_after_a_restart(store, tmp_path):
    _add(store, "a", "k", text="ü\u2028,\"'")
    store.claim("a", ("0", "3"))
    other = JobStore(tmp_path / "jobs.sqlite")
    assert other.get("a") == store.get("a")
    assert other.get("a").request["text"] == "ü\u2028,\"'"
    other.close()


def test_ended_jobs_leave_the_list_oldest_first(store):
    for name in "abcd":
        _add(store, name)
    for name in "bac":
        store.claim(name, ())
        store.finish(name, JobEnding("completed"))
    assert [job.job_id for job in store.drop_ended(1)] == ["a", "b"]
    assert store.drop_ended(1) == []
    assert store.counts() == {"completed": 1, "queued": 1}


def test_restored_jobs_are_as_they_were(store, tmp_path):
    _add(store, "a", "k")
    store.claim("a", ("2",))
    job = store.get("a")
    other = JobStore(tmp_path / "other.sqlite")
    other.restore([(job, "k")])
    other.restore([(job, "k")])
    assert structs.replace(other.get("a"), number=job.number) == job
    assert other.by_key("k", job.request).job.job_id == "a"
    other.close()


def test_a_list_that_cannot_be_made_is_an_error(tmp_path):
    with pytest.raises(JobStoreError, match="cannot be opened"):
        JobStore(tmp_path / "absent" / "jobs.sqlite")
