"""Kill a run against a counting server at random moments; the same command then finishes it.

    python -m benchmarks.kill_resume --kills 20     # JSON on standard output; exit code 1 if a bar is missed

Bars: at most the requests in flight at the kill are sent twice; the final results are identical to those of an
uninterrupted run (except for times); no answer is lost.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.workload import results_of, text_task
from tests.servers.stub import StubServer

DOCUMENTS = 400
CONCURRENCY = 32
DELAY_S = 0.06
TIMES = ("elapsed",)


def command(work: Path, url: str, out: Path) -> list[str]:
    return [
        sys.executable, "-m", "lmms_eval", "--model", "openai", "--tasks", "bench_text",
        "--include_path", str(work / "tasks"), "--output_path", str(out), "--log_samples", "--verbosity", "WARNING",
        "--model_args", f"model=stub,base_url={url},num_concurrent={CONCURRENCY}",
    ]  # fmt: skip


def final_state(out: Path) -> dict[str, Any]:
    """Return everything that must not depend on interruptions: scores, errors, counts and every sample by task."""
    results = results_of(out)
    kept = {key: results[key] for key in ("results", "intervals", "outcomes", "n-samples", "task_hashes", "usage")}
    kept["prompt_fingerprint"] = results["prompt_fingerprint"]
    files = sorted(out.rglob("*_samples_*.jsonl"))
    kept["samples"] = {}
    for file in files:
        stamp, _, task = file.name.partition("_samples_")
        if files[-1].name.startswith(stamp):
            rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
            kept["samples"][task] = [{key: value for key, value in row.items() if key not in TIMES} for row in rows]
    return kept


def is_complete(out: Path) -> bool:
    records = list(out.rglob("run.json"))
    return bool(records) and json.loads(records[0].read_text(encoding="utf-8"))["state"] == "complete"


def finish(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments, capture_output=True, text=True, env=_environment(), check=False, timeout=120)


def _environment() -> dict[str, str]:
    return {**os.environ, "OPENAI_API_KEY": "stub"}


def uninterrupted(work: Path) -> tuple[dict[str, Any], float]:
    out = work / "whole"
    with StubServer(delay=DELAY_S) as server:
        start = time.monotonic()
        done = finish(command(work, server.url, out))
        seconds = time.monotonic() - start
    if done.returncode != 0:
        raise SystemExit(f"the uninterrupted run ended with {done.returncode}: {done.stderr}")
    return final_state(out), seconds


def kill_once(work: Path, number: int, after_s: float, whole: dict[str, Any]) -> dict[str, Any]:
    """Kill one run ``after_s`` seconds after its start, then finish it with the same command."""
    out = work / f"killed-{number}"
    with StubServer(delay=DELAY_S) as server:
        arguments = command(work, server.url, out)
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_environment())
        time.sleep(after_s)
        process.send_signal(signal.SIGKILL)
        process.wait()
        ended_before = is_complete(out)  # a completed run starts over by design, so it is not resumed
        time.sleep(2 * DELAY_S)  # requests that had arrived are counted now
        asked_at_kill = server.stats()["total"]
        done = finish(arguments)
        stats = server.stats()
    asked = stats["by_text"]
    return {
        "after_s": after_s,
        "ended_before_kill": ended_before,
        "asked_at_kill": asked_at_kill,
        "asked_twice": 0 if ended_before else sum(count - 1 for count in asked.values()),
        "most_often": max(asked.values()),
        "never_asked": DOCUMENTS - len(asked),
        "exit_code": done.returncode,
        "identical": done.returncode == 0 and final_state(out) == whole,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    source = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        text_task(work / "tasks", DOCUMENTS)
        whole, seconds = uninterrupted(work)
        kills = [kill_once(work, number, source.uniform(0.3, seconds), whole) for number in range(given.kills)]
    report = {
        "benchmark": "kill_resume",
        "documents": DOCUMENTS,
        "concurrency": CONCURRENCY,
        "uninterrupted_s": seconds,
        "kills": kills,
        "most_asked_twice": max(kill["asked_twice"] for kill in kills),
        "all_identical": all(kill["identical"] for kill in kills),
    }
    print(json.dumps(report, indent=2))
    if report["most_asked_twice"] > CONCURRENCY or not report["all_identical"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
