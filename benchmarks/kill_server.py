"""Kill the evaluation server at random moments, with a queue of five jobs; the next server finishes them.

    python -m benchmarks.kill_server --kills 20     # JSON on standard output; exit code 1 if a bar is missed

In some rounds everything is killed at the same moment, including runs and keepers, as in a power failure. Bars: every
job completes exactly once; its results are those of a direct run; after a kill of only the server no request is sent
twice, after a kill of everything at most those in flight.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.kill_resume import final_state
from benchmarks.workload import text_task
from tests.server.process import ServerProcess
from tests.servers.stub import StubServer

LIMITS = (40, 80, 120, 160, 200)
"""Documents of each job."""
CONCURRENCY = 8
DELAY_S = 0.1
PARALLEL = 2
KILLS_OF_A_ROUND = 2
LONGEST_S = 8.0
"""Longest time from the start of a server to its kill."""
_STARTED = re.compile(r"\bjob \S+ is (?!still\b)")
"""Line of a server's log about a run that starts or resumes."""


@dataclass(frozen=True, slots=True)
class Round:
    """One queue of five jobs, and the kills that it went through."""

    kills_after_s: list[float]
    kills_everything: bool
    completed: int
    identical: int
    starts: int
    """Number of starts of runs in the servers' logs."""
    asked_twice: int
    never_asked: int


def model_args(url: str) -> dict[str, Any]:
    return {"model": "stub", "base_url": url, "num_concurrent": CONCURRENCY}


def direct_runs(work: Path) -> dict[int, dict[str, Any]]:
    """Final states of the same evaluations without a server, by their number of documents."""
    states = {}
    with StubServer(delay=0.0) as stub:
        for limit in LIMITS:
            out = work / f"direct-{limit}"
            arguments = ",".join(f"{key}={value}" for key, value in model_args(stub.url).items())
            command = [
                sys.executable, "-m", "lmms_eval", "--model", "openai", "--model_args", arguments, "--log_samples",
                "--include_path", str(work / "tasks"), "--tasks", "bench_text", "--limit", str(limit),
                "--output_path", str(out),
            ]  # fmt: skip
            subprocess.run(command, check=True, capture_output=True, env={**os.environ, "OPENAI_API_KEY": "stub"})
            states[limit] = final_state(out)
    return states


def kill_all(folder: Path, server: ServerProcess) -> None:
    """Kill the server, the keepers of its jobs and their runs."""
    assert server.process is not None
    below = [str(folder).encode()]
    victims = [server.process.pid]
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError):
                if any(mark in (place / "cmdline").read_bytes() for mark in below):
                    victims.append(int(place.name))
    for pid in victims:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def play(work: Path, number: int, source: random.Random, whole: dict[int, dict[str, Any]]) -> Round:
    """Submit five jobs, kill the server (or everything) twice, and let a last server finish."""
    folder = work / f"server-{number}"
    kills_everything = number % 4 == 3
    with StubServer(delay=DELAY_S) as stub:
        server = ServerProcess(
            folder, ("--include_path", str(work / "tasks"), "--allow_path", stub.url, "--parallel", str(PARALLEL))
        )
        server.start()
        jobs = {
            limit: server.submit(
                model="openai", tasks=["bench_text"], limit=limit, model_args=model_args(stub.url), batch_size=1
            )
            for limit in LIMITS
        }
        moments = [round(source.uniform(0.0, LONGEST_S), 2) for _ in range(KILLS_OF_A_ROUND)]
        for moment in moments:
            time.sleep(moment)
            if kills_everything:
                kill_all(folder, server)
            server.end(signal.SIGKILL)
            server.start()
        ended = {limit: server.wait(job) for limit, job in jobs.items()}
        server.end()
        asked: Counter[str] = Counter(stub.stats()["by_text"])
    return Round(
        moments,
        kills_everything,
        sum(told["status"] == "completed" for told in ended.values()),
        sum(_is_as(told, whole[limit]) for limit, told in ended.items()),
        len(_STARTED.findall(server.log)),
        _asked_twice(asked),
        max(LIMITS) - len(asked),
    )


def _is_as(told: dict[str, Any], whole: dict[str, Any]) -> bool:
    if told["status"] != "completed":
        return False
    results = [Path(one["results"]) for one in told["result"].values()]
    return len(results) == 1 and final_state(results[0].parent) == whole


def _asked_twice(asked: Counter[str]) -> int:
    """Count questions that were asked more often than there are jobs with them."""
    expected = sorted((sum(limit > number for limit in LIMITS) for number in range(max(LIMITS))), reverse=True)
    return sum(asked.values()) - sum(expected[: len(asked)])


def is_good(one: Round) -> bool:
    """Return whether all bars hold for this round."""
    bar = KILLS_OF_A_ROUND * PARALLEL * CONCURRENCY if one.kills_everything else 0
    jobs = len(LIMITS)
    return one.completed == one.identical == jobs and one.never_asked == 0 and one.asked_twice <= bar


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(words)
    source = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        text_task(work / "tasks", max(LIMITS))
        whole = direct_runs(work)
        rounds = [play(work, number, source, whole) for number in range(-(-given.kills // KILLS_OF_A_ROUND))]
    report: dict[str, Any] = {
        "benchmark": "kill_server",
        "jobs_of_a_round": len(LIMITS),
        "kills": sum(len(one.kills_after_s) for one in rounds),
        "rounds": [asdict(one) for one in rounds],
        "jobs": len(rounds) * len(LIMITS),
        "completed": sum(one.completed for one in rounds),
        "identical": sum(one.identical for one in rounds),
        "good_rounds": sum(map(is_good, rounds)),
    }
    print(json.dumps(report, indent=2))
    if report["good_rounds"] < len(rounds):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
