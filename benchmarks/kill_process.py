"""Kill one of four processes under torchrun at random moments; the same command, or a restart, finishes the run.

    python -m benchmarks.kill_process               # about 5 minutes; one JSON object; exit code 1 if a bar is missed

Bars: without restarts the job ends within seconds and with a code other than 0, and finished requests are never sent
again; with one restart (``--max_restarts 1``) it ends with 0 by itself; results are those of an undisturbed job.
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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.kill_resume import final_state, is_complete
from benchmarks.scale_out import free_port
from benchmarks.workload import text_task
from tests.servers.stub import StubServer

PROCESSES = 4
CONCURRENCY = 4
DOCUMENTS = 800
DELAY_S = 0.1
SECONDS_TO_END = 30.0
START_SHARE = 0.2
"""Share of the kills during the start, up to ``START_S`` seconds after all processes exist."""
START_S = 4.0
TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Kill:
    """Outcome of one kill."""

    rank: int
    restarts: int
    answered_before: int
    complete_at_end: bool
    """Whether the results existed when the job ended: the process was then killed after its work."""
    exit_code: int
    seconds_to_end: float
    exit_code_of_next: int | None
    """Exit code of the same command once more; ``None`` if the restart has finished the job."""
    asked_twice: int
    never_asked: int
    identical: bool


def command(work: Path, url: str, out: Path, restarts: int) -> list[str]:
    return [
        sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(PROCESSES),
        "--max_restarts", str(restarts), "--master_port", str(free_port()),
        "-m", "lmms_eval", "--model", "openai", "--tasks", "bench_text", "--include_path", str(work / "tasks"),
        "--output_path", str(out), "--log_samples", "--verbosity", "WARNING", "--max_restarts", str(restarts),
        "--model_args", f"model=stub,base_url={url},num_concurrent={CONCURRENCY}",
    ]  # fmt: skip


def start(arguments: list[str]) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OPENAI_API_KEY": "stub", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)


def workers(launcher: subprocess.Popen[bytes]) -> dict[int, int]:
    """Return the process ids by rank as soon as all exist, or an empty mapping if the launcher has ended."""
    while launcher.poll() is None:
        found = {}
        for child in Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split():
            variables = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
            ranks = [int(text.partition(b"=")[2]) for text in variables if text.startswith(b"RANK=")]
            found.update({rank: int(child) for rank in ranks})
        if len(found) == PROCESSES:
            return found
        time.sleep(0.02)
    return {}


def undisturbed(work: Path) -> tuple[dict[str, Any], float]:
    """Return the final state, and the seconds from the start of the last process to the end."""
    out = work / "whole"
    with StubServer(delay=DELAY_S) as server:
        launcher = start(command(work, server.url, out, 0))
        workers(launcher)
        begin = time.monotonic()
        if launcher.wait(TIMEOUT_S) != 0:
            raise SystemExit(f"the undisturbed job ended with {launcher.returncode}")
        return final_state(out), time.monotonic() - begin


def wait_for(moment: float, server: StubServer, launcher: subprocess.Popen[bytes]) -> None:
    """Wait until a moment: a share of the answers or, if negative, of the start."""
    if moment < 0:
        time.sleep(-moment * START_S)
    while moment > 0 and server.stats()["completed"] < moment * DOCUMENTS and launcher.poll() is None:
        time.sleep(0.01)


def kill_once(work: Path, number: int, source: random.Random, restarts: int, whole: dict[str, Any]) -> Kill:
    """Kill one process at a random moment, then finish with the same command if no launcher restarts it."""
    rank = source.randrange(PROCESSES)
    moment = source.uniform(-1.0, 0.0) if source.random() < START_SHARE else source.uniform(0.0, 1.0)
    out = work / f"killed-{number}"
    with StubServer(delay=DELAY_S) as server:
        arguments = command(work, server.url, out, restarts)
        launcher = start(arguments)
        target = workers(launcher)[rank]
        wait_for(moment, server, launcher)
        answered = server.stats()["completed"]
        os.kill(target, signal.SIGKILL)
        begin = time.monotonic()
        code = launcher.wait(TIMEOUT_S)
        seconds = time.monotonic() - begin
        complete = is_complete(out)  # the run is complete, and the same command would start over
        again = None if complete else start(arguments).wait(TIMEOUT_S)
        asked = server.stats()["by_text"]
    return Kill(
        rank=rank,
        restarts=restarts,
        answered_before=answered,
        complete_at_end=complete,
        exit_code=code,
        seconds_to_end=round(seconds, 2),
        exit_code_of_next=again,
        asked_twice=sum(count - 1 for count in asked.values()),
        never_asked=DOCUMENTS - len(asked),
        identical=is_complete(out) and final_state(out) == whole,
    )


def is_good(kill: Kill) -> bool:
    """Return whether all bars hold for this kill."""
    wanted = kill.exit_code == 0 if kill.restarts else kill.exit_code != 0
    in_time = bool(kill.restarts) or kill.seconds_to_end <= SECONDS_TO_END
    return wanted and in_time and kill.identical and kill.asked_twice <= PROCESSES * CONCURRENCY


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--restarted", type=int, default=3, help="further kills under a launcher that restarts")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    source = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        text_task(work / "tasks", DOCUMENTS)
        whole, seconds = undisturbed(work)
        restarts = [0] * given.kills + [1] * given.restarted
        kills = [kill_once(work, number, source, count, whole) for number, count in enumerate(restarts)]
    plain = [kill for kill in kills if not kill.restarts]
    report: dict[str, Any] = {
        "benchmark": "kill_process",
        "documents": DOCUMENTS,
        "processes": PROCESSES,
        "concurrency_of_each": CONCURRENCY,
        "undisturbed_s": seconds,
        "kills": [asdict(kill) for kill in kills],
        "max_seconds_to_end": max((kill.seconds_to_end for kill in plain), default=0.0),
        "max_asked_twice": max(kill.asked_twice for kill in kills),
        "identical": sum(kill.identical for kill in kills),
        "of": len(kills),
        "good": sum(is_good(kill) for kill in kills),
    }
    print(json.dumps(report, indent=2))
    if report["good"] < len(kills):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
