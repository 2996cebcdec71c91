"""Measure the cost of the harness around an API: CPU per sample, span, throughput, memory, bytes.

    python -m benchmarks.overhead            # one JSON object on standard output
    python -m benchmarks.overhead --only many_connections --repeats 3
    python -m benchmarks.overhead --only processes      # throughput of --processes 1 and 2

A stub server on loopback, in another process, answers at once (CPU) or after 50 ms (span, throughput). CPU per sample
is the whole process's CPU minus that of a run over one document, divided by the number of further documents. Numbers
that are compared with a bare aiohttp script are medians over ``--repeats`` turns; both run in each turn.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.workload import Finished, picture_task, results_of, run_child, text_task
from tests.servers.stub import StubServer

CONCURRENCY = 32
DELAY_S = 0.05
BARS = {
    "text_cpu_ms": 1.0, "image_cpu_ms": 2.0, "span_s": 0.86, "first_request_s": 0.8, "peak_mb": 150.0,
    "image_megabytes_ratio": 1.02, "many_connections_cpu_ms": 0.2, "many_connections_throughput_ratio": 0.9,
    "span_ratio_to_bare_script": 1.03,
}  # fmt: skip
MANY = (256, 1000)
MANY_DOCUMENTS = 3000


BARE_SCRIPT = """
import asyncio, json, sys, time, aiohttp

url, documents, concurrency = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


async def main():
    slots = asyncio.Semaphore(concurrency)

    async def ask(session, number):
        async with slots:
            body = {"model": "stub", "messages": [{"role": "user", "content": f"Question {number} ANSWER=a"}]}
            async with session.post(f"{url}/chat/completions", json=body) as answer:
                await answer.json()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency)) as session:
        start, cpu = time.monotonic(), time.process_time()
        await asyncio.gather(*(ask(session, number) for number in range(documents)))
        print(json.dumps({"span_s": time.monotonic() - start, "cpu_s": time.process_time() - cpu}))


asyncio.run(main())
"""


def evaluate(
    work: Path, task: str, server: StubServer, limit: int | None = None, concurrency: int = CONCURRENCY, *more: str
) -> tuple[Finished, dict[str, Any]]:
    out = work / f"out-{task}-{limit}-{len(list(work.iterdir()))}"
    arguments = [
        "-m", "lmms_eval", "--model", "openai", "--tasks", task, "--include_path", str(work / "tasks"),
        "--model_args", f"model=stub,base_url={server.url},num_concurrent={concurrency}",
        "--output_path", str(out), "--log_samples", *more,
    ]  # fmt: skip
    finished = run_child([*arguments, *(["--limit", str(limit)] if limit else [])], {"OPENAI_API_KEY": "stub"})
    if finished.exit_code != 0:
        sys.stderr.write(finished.output)
        raise SystemExit(f"the run over {task} ended with code {finished.exit_code}")
    return finished, results_of(out)


def per_sample(work: Path, task: str, documents: int) -> dict[str, float]:
    with StubServer() as server:
        base, _ = evaluate(work, task, server, limit=1)
    with StubServer() as server:
        full, _ = evaluate(work, task, server)
        stats = server.stats()
    return {
        "cpu_ms": 1000 * (full.cpu_s - base.cpu_s) / (documents - 1),
        "start_up_cpu_s": base.cpu_s,
        "peak_mb": full.peak_mb,
        "bytes_per_request": stats["bytes"] / stats["total"],
        "max_in_flight": stats["max_in_flight"],
    }


def span(work: Path, task: str, documents: int) -> dict[str, float]:
    with StubServer(delay=DELAY_S) as server:
        finished, results = evaluate(work, task, server)
        stats = server.stats()
    ideal = math.ceil(documents / CONCURRENCY) * DELAY_S
    seconds = results["timing"]["first_request_to_last_response"]
    return {
        "span_s": seconds,
        "ideal_s": ideal,
        "ratio": seconds / ideal,
        "server_span_s": max(stats["times"]) + DELAY_S - min(stats["times"]),
        "first_request_s": min(stats["times"]) - finished.started_at,
    }


def bare(documents: int, concurrency: int) -> dict[str, float]:
    """Ask the same questions from a bare aiohttp script, to measure this machine without any harness."""
    with StubServer(delay=DELAY_S) as server:
        finished = run_child(["-c", BARE_SCRIPT, server.url, str(documents), str(concurrency)])
    numbers: dict[str, float] = json.loads(finished.output)
    return numbers


def medians(turns: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}


def many_connections(work: Path, task: str, concurrency: int) -> dict[str, float]:
    """Ask ``MANY_DOCUMENTS`` text questions over a number of connections."""
    script = bare(MANY_DOCUMENTS, concurrency)
    with StubServer(delay=DELAY_S) as server:
        base, _ = evaluate(work, task, server, 1, concurrency)
    with StubServer(delay=DELAY_S) as server:
        full, results = evaluate(work, task, server, None, concurrency)
        in_flight = server.stats()["max_in_flight"]
    seconds = results["timing"]["first_request_to_last_response"]
    return {
        "cpu_ms": 1000 * (full.cpu_s - base.cpu_s) / (MANY_DOCUMENTS - 1),
        "bare_script_cpu_ms": 1000 * script["cpu_s"] / MANY_DOCUMENTS,
        "requests_per_s": MANY_DOCUMENTS / seconds,
        "bare_script_requests_per_s": MANY_DOCUMENTS / script["span_s"],
        "throughput_ratio": script["span_s"] / seconds,
        "max_in_flight": in_flight,
    }


def processes(work: Path, task: str, count: int) -> dict[str, float]:
    """Ask the same over 256 connections from ``count`` processes, timed by the server's clock."""
    with StubServer(delay=DELAY_S) as server:
        evaluate(work, task, server, None, MANY[0], "--processes", str(count))
        stats = server.stats()
    seconds = max(stats["times"]) + DELAY_S - min(stats["times"])
    return {"requests_per_s": MANY_DOCUMENTS / seconds, "max_in_flight": stats["max_in_flight"]}


def span_beside_bare(work: Path, task: str) -> dict[str, float]:
    script = bare(500, CONCURRENCY)
    numbers = span(work, task, 500)
    return {
        **numbers,
        "bare_script_span_s": script["span_s"],
        "ratio_to_bare_script": numbers["span_s"] / script["span_s"],
    }


def image_numbers(work: Path) -> dict[str, float]:
    task = picture_task(work / "tasks", 200)
    numbers = per_sample(work, task, 200)
    file_bytes = sum(path.stat().st_size for path in (work / "tasks").glob("*.jpg")) / 20
    return {**numbers, "bytes_ratio_to_base64_of_file": numbers["bytes_per_request"] / (file_bytes * 4 / 3)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=("text", "image", "span_50ms", "many_connections", "processes"))
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()

    def turns(measure: Callable[[], dict[str, float]]) -> dict[str, float]:
        return medians([measure() for _ in range(given.repeats)])

    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        text = text_task(work / "tasks", 500)
        many = text_task(work / "tasks", MANY_DOCUMENTS, "bench_many")
        parts: dict[str, Callable[[], dict[str, Any]]] = {
            "text": lambda: per_sample(work, text, 500),
            "image": lambda: image_numbers(work),
            "span_50ms": lambda: turns(partial(span_beside_bare, work, text)),
            "many_connections": lambda: {
                str(count): turns(partial(many_connections, work, many, count)) for count in MANY
            },
            "processes": lambda: {str(count): turns(partial(processes, work, many, count)) for count in (1, 2)},
        }
        numbers = {name: measure() for name, measure in parts.items() if given.only in (None, name)}
    print(json.dumps({"benchmark": "overhead", "concurrency": CONCURRENCY, **numbers, "bars": BARS}, indent=2))


if __name__ == "__main__":
    main()
