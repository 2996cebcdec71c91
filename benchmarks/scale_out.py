"""Compare the processes of one launch with the ideal for skewed work: 10 % of the requests take 20 times as long.

    python -m benchmarks.scale_out      # about 2 minutes; one JSON object on standard output

One process is started plainly, 2 and 4 through torchrun and through accelerate. Bar: wall time of the asking at most
1.1 times the ideal (sum of all work / processes) with 4 processes. Static sharding (document i to process i mod n)
is computed from the same costs for comparison.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.workload import results_of, text_task
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, Response

DOCUMENTS = 600
MOST = 4
"""Number of processes that the bar applies to."""
BAR = 1.1
SHORT_S, LONG_S = 0.02, 0.4
ACCELERATE = ["--multi_gpu", "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"]
LAUNCHERS = {
    "torchrun": ["-m", "torch.distributed.run", "--nproc_per_node"],
    "accelerate": ["-m", "accelerate.commands.launch", *ACCELERATE, "--num_processes"],
}


def costs(documents: int) -> list[float]:
    """Return the seconds of work by document."""
    source = random.Random(0)
    return [LONG_S if source.random() < 0.1 else SHORT_S for _ in range(documents)]


class Sleeper(Model):
    """A simulated accelerator: sleeps for each document's cost, one after another."""

    concurrency = 1

    def __init__(self, documents: int) -> None:
        self._costs = costs(documents)

    def prepare(self, request: Request) -> Request:
        return request.with_payload(None, 0)

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while batch := stream.take(1):
            for request in batch:
                time.sleep(self._costs[request.doc_id])
                yield Response(request.id, text="a0", finish_reason="stop")

    def identity(self) -> dict[str, Any]:
        return {"sleeper": 1}


def child(tasks: str, out: str, documents: int) -> None:
    from lmms_eval.config import build_config
    from lmms_eval.evaluator import run

    values = {
        "model": "sleeper",
        "tasks": "bench_text",
        "include_path": tasks,
        "output_path": out,
        "verbosity": "WARNING",
    }
    sys.exit(run(build_config(values), Sleeper(documents)).exit_code)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def measure(work: Path, launcher: str, processes: int) -> dict[str, Any]:
    out = work / f"out-{launcher}-{processes}"
    arguments = ["-m", "benchmarks.scale_out", "--child", str(work / "tasks"), "--out", str(out)]
    port_flag = "--master_port" if launcher == "torchrun" else "--main_process_port"
    launch = [] if processes == 1 else [*LAUNCHERS[launcher], str(processes), port_flag, str(free_port())]
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, *launch, *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        raise SystemExit(f"{launcher} with {processes} processes ended with code {done.returncode}")
    asking = results_of(out)["timing"]["first_request_to_last_response"]
    ideal = sum(costs(DOCUMENTS)) / processes
    return {
        "launcher": launcher,
        "processes": processes,
        "asking_s": asking,
        "ideal_s": ideal,
        "ratio_to_ideal": asking / ideal,
        "static_sharding_ratio": static_sharding(processes),
        "whole_command_s": time.monotonic() - start,
    }


def static_sharding(processes: int) -> float:
    """Return the ratio to the ideal if document i is assigned to process i mod n in advance."""
    work = costs(DOCUMENTS)
    return max(sum(work[rank::processes]) for rank in range(processes)) / (sum(work) / processes)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--child")
    parser.add_argument("--out", default="")
    given = parser.parse_args()
    if given.child:
        child(given.child, given.out, DOCUMENTS)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        text_task(work / "tasks", DOCUMENTS)
        rows = [measure(work, "plain", 1)]
        rows += [measure(work, name, count) for name in LAUNCHERS for count in (2, MOST)]
    report = {
        "benchmark": "scale_out",
        "documents": DOCUMENTS,
        "rows": rows,
        "ratio_to_ideal": max(row["ratio_to_ideal"] for row in rows if row["processes"] == MOST),
        "static_sharding_ratio": static_sharding(MOST),
        "bar": BAR,
    }
    print(json.dumps(report, indent=2))
    if report["ratio_to_ideal"] > BAR:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
