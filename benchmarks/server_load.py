"""Measure the evaluation server under load: submissions of many clients, status calls, memory over many jobs.

    python -m benchmarks.server_load     # JSON on standard output; exit code 1 if a bar is missed

The server is the real one, called over HTTP. Instead of a run, each job has a stub that leaves a results file and the
record of its end without a process, since a thousand real runs would measure the start of Python.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lmms_eval.server.client import EvalClient
from tests.server.process import ServerProcess

SUBMISSIONS, CLIENTS, POLLERS, JOBS = 200, 32, 4, 1000
MOST_GROWTH = 0.1
"""Share that memory may grow by over the second half of the jobs."""
WORDS = ("--submissions_per_minute", "1000000", "--parallel", "4", "--max_completed_jobs", "300")


def serve(arguments: list[str]) -> int:
    """Serve as ``lmms-eval serve`` does, with stubs for the runs."""
    from lmms_eval.cli.main import main as command
    from lmms_eval.server.folder import Exit
    from lmms_eval.server.scheduler import RunningJob
    from lmms_eval.server.store import now

    def start(worker: RunningJob) -> None:
        folder = worker.folder
        place = folder.output / "model"
        place.mkdir(parents=True)
        (place / "20260101_000000_results.json").write_text(json.dumps({"results": {"t": {"alias": "t"}}}))
        folder.reserve_exit()
        folder.write_exit(Exit(0, now()))

    RunningJob.start = start  # type: ignore[method-assign, assignment]
    return int(command(arguments))


def timed(call: Callable[[], Any], times: list[float]) -> Any:
    begin = time.perf_counter()
    found = call()
    times.append(time.perf_counter() - begin)
    return found


def told(times: list[float]) -> dict[str, float]:
    """Return the number of calls, and their times in milliseconds."""
    ordered = sorted(times)
    at = {name: ordered[int(share * (len(ordered) - 1))] for name, share in (("p50", 0.5), ("p95", 0.95), ("max", 1))}
    return {"calls": len(ordered), **{f"{name}_ms": round(value * 1000, 1) for name, value in at.items()}}


def load(server: ServerProcess) -> dict[str, Any]:
    """Submit from many clients at once, while others ask for a job again and again."""
    url = str(server.client.base_url)
    submitted: list[float] = []
    asked: list[float] = []
    quiet: list[float] = []
    is_over = threading.Event()

    def submit(count: int) -> list[str]:
        with EvalClient(url) as client:
            return [str(timed(lambda: client.evaluate("baseline", ["t"]), submitted)["job_id"]) for _ in range(count)]

    def poll(job: str, times: list[float], count: int | None) -> None:
        with EvalClient(url) as client:
            while not is_over.is_set() and (count is None or len(times) < count):
                timed(lambda: client.get_job(job), times)

    first = submit(1)[0]
    submitted.clear()
    poll(first, quiet, 200)
    pollers = [threading.Thread(target=poll, args=(first, asked, None)) for _ in range(POLLERS)]
    shares = [SUBMISSIONS // CLIENTS + (number < SUBMISSIONS % CLIENTS) for number in range(CLIENTS)]
    for thread in pollers:
        thread.start()
    begin = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        jobs = [job for found in pool.map(submit, shares) for job in found]
    seconds = time.perf_counter() - begin
    is_over.set()
    for thread in pollers:
        thread.join()
    ended = [server.wait(job)["status"] for job in jobs]
    return {
        "submissions": len(set(jobs)),
        "clients": CLIENTS,
        "completed": ended.count("completed"),
        "seconds": round(seconds, 2),
        "submission": told(submitted),
        "status_alone": told(quiet),
        "status_under_load": told(asked),
    }


def memory(server: ServerProcess, jobs: int) -> dict[str, Any]:
    """Run jobs one after the other, each with all calls of a client, and record the resident memory."""
    sizes = []
    for number in range(jobs):
        job = server.submit(model="baseline", tasks=["t"])
        while server.job(job)["status"] != "completed":
            time.sleep(0.005)
        for what in ("results", "log", "events", "files"):
            server.client.get(f"/jobs/{job}/{what}")
        if (number + 1) % max(1, jobs // 20) == 0:
            sizes.append(_resident_mb(server))
    return {
        "jobs": jobs,
        "rss_mb": sizes,
        "growth_of_second_half": round(sizes[-1] / sizes[len(sizes) // 2 - 1] - 1, 4),
    }


def _resident_mb(server: ServerProcess) -> float:
    assert server.process is not None
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return round(next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024, 1)


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["serve"]:
        return serve(words)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--jobs", type=int, default=JOBS)
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as place:
        server = ServerProcess(Path(place) / "server", WORDS, program=("-m", "benchmarks.server_load"))
        server.start()
        try:
            found = {"load": load(server), "memory": memory(server, given.jobs)}
        finally:
            server.end()
    print(json.dumps(found, indent=1))
    is_sound = found["load"]["completed"] == SUBMISSIONS and found["memory"]["growth_of_second_half"] < MOST_GROWTH
    return 0 if is_sound else 1


if __name__ == "__main__":
    sys.exit(main())
