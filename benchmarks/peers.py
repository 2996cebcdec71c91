"""Compare other harnesses with this one on the same questions and server: waits, processor time, memory, failures.

    python -m benchmarks.peers --lm_eval ENV --inspect_ai ENV --lmms_eval ENV     # JSON on standard output

``ENV`` is a virtual environment with that harness (``pip install 'lm_eval[api]'``, ``inspect_ai
openai``, ``lmms_eval``); one that is not named is left out. Each harness runs from its command line as its
documentation says, 32 requests at a time, without a pause in the server's answers. Processor time per question is the
difference between the quickest runs of 2,100 and of 100 questions. The failures are a server that always answers a
tenth of the questions with HTTP 500 (one retry each), and a SIGKILL after half of the answers, followed by the same
command.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.workload import Finished, run_command, text_task
from tests.servers.stub import StubServer

FEW, MANY = 100, 2100
CONNECTIONS = 32
FAILING = 0.1
KILLED_DELAY_S = 0.5
TIMEOUT_S = 300
INSPECT_TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import FieldSpec, json_dataset
from inspect_ai.scorer import exact
from inspect_ai.solver import generate


@task
def bench_text():
    data = json_dataset("bench_text.jsonl", FieldSpec(input="question", target="answer"))
    return Task(dataset=data, solver=generate(), scorer=exact())
"""


@dataclass(frozen=True, slots=True)
class Harness:
    """A harness's commands; the first word is a program or the interpreter of its environment."""

    name: str
    version: Sequence[str]
    help: Sequence[str]
    tasks: Sequence[str] | None
    evaluation: Callable[[str, Path], list[str]]
    """Builds the command from the server's address and the folder of the task."""


def harnesses(lm_eval: Path | None, inspect_ai: Path | None, lmms_eval: Path | None) -> Iterator[Harness]:
    """Return the harnesses that have an environment, this one first."""
    own = [sys.executable, "-m", "lmms_eval"]
    arguments = f"num_concurrent={CONNECTIONS},max_retries=1"
    yield Harness(
        "this harness", [*own, "--version"], [*own, "--help"], [*own, "tasks", "list"],
        lambda url, folder: [
            *own, "--model", "openai", "--model_args", f"model=stub,base_url={url},{arguments}",
            "--tasks", "bench_text", "--include_path", str(folder), "--output_path", str(folder / "out"),
            "--log_samples",
        ],
    )  # fmt: skip
    if lm_eval:
        program = str(lm_eval / "bin" / "lm-eval")
        yield Harness(
            "lm-eval", [str(lm_eval / "bin" / "pip"), "show", "lm_eval"], [program, "--help"], [program, "ls", "tasks"],
            lambda url, folder: [
                program, "run", "--model", "local-chat-completions", "--model_args",
                f"model=stub,base_url={url}/chat/completions,{arguments}", "--tasks", "bench_text",
                "--include_path", str(folder), "--apply_chat_template", "--output_path", str(folder / "out"),
                "--log_samples",
            ],
        )  # fmt: skip
    if inspect_ai:
        inspect = str(inspect_ai / "bin" / "inspect")
        yield Harness(
            "inspect_ai", [inspect, "--version"], [inspect, "--help"], None,
            lambda url, folder: [
                inspect, "eval", "bench_text.py", "--model", "openai-api/stub/stub", "--model-base-url", url,
                "--max-connections", str(CONNECTIONS), "--max-samples", str(CONNECTIONS), "--max-retries", "1",
                "--display", "plain", "--log-dir", str(folder / "out"),
            ],
        )  # fmt: skip
    if lmms_eval:
        other = [str(lmms_eval / "bin" / "python"), "-m", "lmms_eval"]
        yield Harness(
            "lmms-eval", [str(lmms_eval / "bin" / "pip"), "show", "lmms_eval"], [*other, "--help"],
            [*other, "--tasks", "list"],
            lambda url, folder: [
                *other, "--model", "async_openai", "--model_args",
                f"model_version=stub,base_url={url},api_key=key-of-nobody,num_cpus={CONNECTIONS}",
                "--tasks", "bench_text",
                "--include_path", str(folder), "--output_path", str(folder / "out"), "--log_samples",
            ],
        )  # fmt: skip


@contextmanager
def workplace(documents: int) -> Iterator[Path]:
    """Make an empty folder with the task in the form of each harness."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text_task(folder, documents)
        yaml = folder / "bench_text.yaml"
        yaml.write_text(yaml.read_text().replace("bench_text.jsonl", str(folder / "bench_text.jsonl")))
        (folder / "bench_text.py").write_text(INSPECT_TASK, encoding="utf-8")
        yield folder


def variables(folder: Path) -> dict[str, str]:
    """Return the environment variables: keys, no network, caches only in this folder."""
    paths = {name: str(folder / "home") for name in ("HF_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")}
    keys = dict.fromkeys(("OPENAI_API_KEY", "STUB_API_KEY"), "key-of-nobody")
    return {**paths, **keys, "HF_HUB_OFFLINE": "1"}


def finished(command: Sequence[str], folder: Path) -> Finished:
    """Run a command to its end and measure it."""
    return run_command(command, variables(folder), folder)


def wait_s(command: Sequence[str], runs: int) -> float:
    """Return the median time of a command, after one run that warms the file cache."""
    with tempfile.TemporaryDirectory() as name:
        return statistics.median([finished(command, Path(name)).wall_s for _ in range(runs + 1)][1:])


def asked(harness: Harness, documents: int) -> dict[str, float]:
    """Evaluate once and return the process's figures."""
    with workplace(documents) as folder, StubServer() as server:
        ended = finished(harness.evaluation(server.url, folder), folder)
        stats = server.stats()
    if ended.exit_code or stats["total"] < documents:
        raise SystemExit(f"{harness.name}: exit code {ended.exit_code}, {stats['total']} asked\n{ended.output[-3000:]}")
    return {
        "cpu_s": ended.cpu_s,
        "peak_mb": ended.peak_mb,
        "first_request_s": min(stats["times"]) - ended.started_at,
    }


def troubled(harness: Harness) -> dict[str, Any]:
    """Evaluate over a server that fails a tenth of the questions, and return how it ended."""
    with workplace(FEW) as folder, StubServer(fault="500", share=FAILING) as server:
        ended = finished(["timeout", str(TIMEOUT_S), *harness.evaluation(server.url, folder)], folder)
        stats = server.stats()
    return {"exit_code": ended.exit_code, "asked": stats["total"], "wall_s": ended.wall_s, "says": ended.output[-1500:]}


def killed(harness: Harness) -> dict[str, Any]:
    """Kill an evaluation after half of its answers, give the same command again, and count the questions."""
    with workplace(FEW) as folder, StubServer(delay=KILLED_DELAY_S) as server:
        command = harness.evaluation(server.url, folder)
        with open(os.devnull, "w") as nowhere:
            first = subprocess.Popen(
                command, cwd=folder, env={**os.environ, **variables(folder)}, stdout=nowhere, stderr=nowhere
            )
        deadline = time.monotonic() + TIMEOUT_S
        while server.stats()["completed"] < FEW // 2 and first.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        first.send_signal(signal.SIGKILL)
        first.wait()
        before = server.stats()["total"]
        again = finished(["timeout", str(TIMEOUT_S), *command], folder)
        total = server.stats()["total"]
    return {"asked_before": before, "asked_after": total - before, "exit_code": again.exit_code}


def measured(harness: Harness, runs: int) -> dict[str, Any]:
    """Measure one harness."""
    few = [asked(harness, FEW) for _ in range(runs)]
    many = [asked(harness, MANY) for _ in range(runs)]

    processor_s = min(one["cpu_s"] for one in many) - min(one["cpu_s"] for one in few)
    with tempfile.TemporaryDirectory() as name:
        version = finished(harness.version, Path(name)).output
    return {
        "version": next((line for line in version.splitlines() if any(sign.isdigit() for sign in line)), version),
        "help_s": wait_s(harness.help, runs),
        "tasks_s": wait_s(harness.tasks, runs) if harness.tasks else None,
        "first_request_s": statistics.median(one["first_request_s"] for one in few),
        "cpu_ms_per_question": 1000 * processor_s / (MANY - FEW),
        "peak_mb": statistics.median(one["peak_mb"] for one in many),
        "a_tenth_fails": troubled(harness),
        "killed_at_half": killed(harness),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    for name in ("lm_eval", "inspect_ai", "lmms_eval"):
        parser.add_argument(f"--{name}", type=Path)
    chosen = vars(parser.parse_args())
    runs = chosen.pop("runs")
    found = {one.name: measured(one, runs) for one in harnesses(**chosen)}
    print(json.dumps({"benchmark": "peers", "runs": runs, "harnesses": found}, indent=2))


if __name__ == "__main__":
    main()
