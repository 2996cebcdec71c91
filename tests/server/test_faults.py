"""Faults, each with a real server and real runs: ``benchmarks/kill_server.py`` kills more often."""

from __future__ import annotations

import random
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.kill_server import LIMITS as DOCUMENTS_OF_JOBS
from benchmarks.kill_server import direct_runs, is_good, play
from benchmarks.workload import text_task
from lmms_eval.storage.run_folder import start_time
from tests.server.process import ServerProcess, running_server
from tests.servers.stub import StubServer

PLUGIN = Path(__file__).parent


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    text_task(tmp_path / "tasks", 40)
    return tmp_path / "tasks"


@pytest.fixture
def server(tmp_path: Path, tasks: Path) -> Iterator[ServerProcess]:
    words = ("--include_path", str(tasks), "--plugins", "faulty_plugin", "--grace", "3")
    with running_server(tmp_path / "server", *words, PYTHONPATH=str(PLUGIN)) as running:
        yield running


def _submit(server: ServerProcess, mode: str = "answer") -> str:
    return server.submit(model="faulty", tasks=["bench_text"], model_args={"mode": mode}, limit=2)


def _pids(server: ServerProcess, job_id: str) -> list[int]:
    """The processes of a run that hangs, as soon as it does."""
    file = server.folder / "jobs" / job_id / "work" / "pids"
    for _ in range(600):
        if file.exists():
            return [int(word) for word in file.read_text().split()]
        time.sleep(0.1)
    raise AssertionError(server.job(job_id))


def _are_gone(pids: list[int]) -> bool:
    assert len(pids) == 3
    return all(start_time(pid) is None for pid in pids)


def test_killed_servers_lose_and_repeat_nothing(tmp_path: Path) -> None:
    text_task(tmp_path / "tasks", max(DOCUMENTS_OF_JOBS))
    whole = direct_runs(tmp_path)
    source = random.Random()
    alone, everything = (play(tmp_path, number, source, whole) for number in (0, 3))
    assert not alone.kills_everything and everything.kills_everything
    assert is_good(alone), alone
    assert is_good(everything), everything


@pytest.mark.parametrize("mode", ["hang", "stubborn"])
def test_a_cancelled_run_ends_with_all_of_its_processes(server: ServerProcess, mode: str) -> None:
    running, queued = _submit(server, mode), _submit(server)
    pids = _pids(server, running)
    answers = [server.client.delete(f"/jobs/{job}") for job in (queued, running)]
    assert [answer.status_code for answer in answers] == [200, 202]
    told = server.wait(running)
    assert (told["status"], told["result"], told["error"]) == ("cancelled", None, None)
    assert server.job(queued)["status"] == "cancelled"
    assert server.job(queued)["started_at"] is None
    assert _are_gone(pids)
    for job in (queued, running):
        assert server.client.delete(f"/jobs/{job}").status_code == 400
    assert server.client.delete("/jobs/nobody").status_code == 404


def test_a_server_that_is_told_to_end_interrupts_runs_and_the_next_one_goes_on(server: ServerProcess) -> None:
    job = _submit(server, "hang")
    pids = _pids(server, job)
    assert server.end() == 0
    assert _are_gone(pids)
    server.start()
    assert server.job(job)["status"] == "running"
    (server.folder / "jobs" / job / "work" / "pids").unlink()
    _pids(server, job)
    server.client.delete(f"/jobs/{job}")
    assert server.wait(job)["status"] == "cancelled"


def test_a_run_that_a_signal_kills_has_failed_and_the_next_one_runs(server: ServerProcess) -> None:
    dead, alive = _submit(server, "die"), _submit(server)
    told = server.wait(dead)
    assert told["status"] == "failed"
    assert "signal 9 (SIGKILL)" in told["error"]
    assert server.wait(alive)["status"] == "completed"


def test_a_flooded_log_is_kept_within_bounds(server: ServerProcess) -> None:
    job = _submit(server, "flood")
    told = server.wait(job)
    assert told["status"] == "completed", told
    log = server.folder / "jobs" / job / "log"
    assert sum(path.stat().st_size for path in log.iterdir()) < 16 << 20
    text = server.client.get(f"/jobs/{job}/log").text
    assert "bytes of the log are not kept]" in text
    assert "bench_text" in server.client.get(f"/jobs/{job}/log", params={"tail": 20}).text
    with server.client.stream("GET", f"/jobs/{job}/events") as answer:
        places = [int(line[4:]) for line in answer.iter_lines() if line.startswith("id: ")]
    assert places == sorted(places)
    assert places[-1] > 100 << 20


def test_two_clients_submit_each_job_once(server: ServerProcess) -> None:
    def submit(number: int) -> str:
        answer = server.client.post(
            "/evaluate",
            json={"model": "faulty", "tasks": ["bench_text"], "limit": 1 + number},
            headers={"Idempotency-Key": str(number)},
        )
        assert answer.status_code == 200, answer.text
        return str(answer.json()["job_id"])

    with ThreadPoolExecutor(8) as pool:
        jobs = [*pool.map(submit, [*range(6), *range(6), *range(6)])]
    assert jobs[:6] == jobs[6:12] == jobs[12:]
    assert len(set(jobs)) == 6
    other = server.client.post(
        "/evaluate", json={"model": "faulty", "tasks": ["bench_text"]}, headers={"Idempotency-Key": "1"}
    )
    assert other.status_code == 409
    for job in reversed(jobs[:6]):
        server.client.delete(f"/jobs/{job}")
    assert {server.wait(job)["status"] for job in jobs[1:6]} == {"cancelled"}


def test_a_full_disk_refuses_submissions_and_loses_nothing(tmp_path: Path, tasks: Path) -> None:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))

    words = ("--include_path", str(tasks), "--plugins", "faulty_plugin", "--grace", "3")
    server = ServerProcess(tmp_path / "server", words, {"PYTHONPATH": str(PLUGIN)}, before=limit)
    server.start()
    kept, refused = [], None
    for number in range(40):
        body = {
            "model": "faulty",
            "tasks": ["bench_text"],
            "limit": 2,
            "system_instruction": f"{number} " + "x" * 20_000,
        }
        answer = server.client.post("/evaluate", json=body)
        if answer.status_code != 200:
            refused = answer
            break
        kept.append(answer.json()["job_id"])
    assert kept
    assert refused is not None
    assert refused.status_code == 507, refused.text
    assert "make room" in refused.json()["detail"]
    assert server.client.get("/health").status_code == 200
    server.end(signal.SIGKILL)
    server.before = None
    server.start()
    listed = server.client.get("/queue").json()
    assert {*listed["queued_jobs"], *listed["running_jobs"]} <= set(kept)
    for job in reversed(kept[1:]):
        server.client.delete(f"/jobs/{job}")
    assert server.wait(kept[0])["status"] in ("completed", "failed")
    again = _submit(server)
    assert server.wait(again)["status"] == "completed"
    assert server.end() == 0


def test_a_damaged_list_is_made_anew_from_the_folders_of_the_jobs(server: ServerProcess) -> None:
    done = _submit(server)
    server.wait(done)
    hanging, queued = _submit(server, "hang"), _submit(server)
    pids = _pids(server, hanging)
    before = server.job(done)
    server.end(signal.SIGKILL)
    for file in server.folder.glob("jobs.sqlite*"):  # the log ahead of it too, which alone would mend it
        file.write_bytes(b"no database at all" * 1000)
    server.start()
    assert "is damaged" in server.log
    assert [path.name for path in server.folder.glob("jobs.sqlite.damaged-*") if path.name[-1].isdigit()]
    assert server.job(done) == before
    assert server.job(hanging)["status"] == "running"
    assert server.job(queued)["status"] == "queued"
    server.client.delete(f"/jobs/{hanging}")
    assert server.wait(hanging)["status"] == "cancelled"
    assert _are_gone(pids)
    assert server.wait(queued)["status"] == "completed"


def test_a_port_or_a_folder_in_use_is_one_line(server: ServerProcess, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lmms_eval", "serve"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [*command, "--port", port, "--folder", str(tmp_path / "other")], capture_output=True, text=True
        )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and f":{port} is in use" in done.stderr
    done = subprocess.run([*command, "--port", "0", "--folder", str(server.folder)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and "another server uses the folder" in done.stderr


def test_an_answer_that_was_journaled_is_not_asked_again_after_an_interruption(tmp_path: Path, tasks: Path) -> None:
    with StubServer(delay=0.2) as stub:
        words = ("--include_path", str(tasks), "--allow_path", stub.url)
        with running_server(tmp_path / "server", *words) as server:
            job = server.submit(
                model="openai", tasks=["bench_text"],
                model_args={"model": "stub", "base_url": stub.url, "num_concurrent": 2},
            )  # fmt: skip
            while stub.stats()["completed"] < 4:
                time.sleep(0.05)
            server.end()
            asked = stub.stats()["total"]
            assert asked < 40
            server.start()
            assert server.wait(job)["status"] == "completed"
        assert stub.stats()["total"] == 40
