"""What the harness costs around an API: CPU per sample, span against the ideal, time to first request, memory, bytes.

    python -m benchmarks.overhead            # one JSON object on standard output

A stub server on loopback answers at once (CPU) or after 50 ms (span). CPU per sample is the whole process's CPU less
that of a run over one document, divided by the further documents.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.workload import Finished, picture_task, results_of, run_child, text_task
from tests.servers.stub import StubServer

CONCURRENCY = 32
DELAY_S = 0.05
BARS = {
    "text_cpu_ms": 1.0, "image_cpu_ms": 2.0, "span_s": 0.86, "first_request_s": 0.8, "peak_mb": 150.0,
    "image_megabytes_ratio": 1.02,
}  # fmt: skip


BARE_SCRIPT = """
import asyncio, sys, time, aiohttp

url, documents, concurrency = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


async def main():
    slots = asyncio.Semaphore(concurrency)

    async def ask(session, number):
        async with slots:
            body = {"model": "stub", "messages": [{"role": "user", "content": f"Question {number} ANSWER=a"}]}
            async with session.post(f"{url}/chat/completions", json=body) as answer:
                await answer.json()

    async with aiohttp.ClientSession() as session:
        start = time.monotonic()
        await asyncio.gather(*(ask(session, number) for number in range(documents)))
        print(time.monotonic() - start)


asyncio.run(main())
"""


def evaluate(work: Path, task: str, server: StubServer, limit: int | None = None) -> tuple[Finished, dict[str, Any]]:
    out = work / f"out-{task}-{limit}-{len(list(work.iterdir()))}"
    arguments = [
        "-m", "lmms_eval", "--model", "openai", "--tasks", task, "--include_path", str(work / "tasks"),
        "--model_args", f"model=stub,base_url={server.url},num_concurrent={CONCURRENCY}",
        "--output_path", str(out), "--log_samples",
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


def bare_span(documents: int) -> float:
    """The same questions from a bare aiohttp script: what this machine gives without any harness."""
    with StubServer(delay=DELAY_S) as server:
        finished = run_child(["-c", BARE_SCRIPT, server.url, str(documents), str(CONCURRENCY)])
    return float(finished.output)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        text = text_task(work / "tasks", 500)
        image = picture_task(work / "tasks", 200)
        file_bytes = sum(path.stat().st_size for path in (work / "tasks").glob("*.jpg")) / 20
        numbers = {
            "text": per_sample(work, text, 500),
            "image": per_sample(work, image, 200),
            "span_50ms": span(work, text, 500),
        }
        numbers["span_50ms"]["bare_script_span_s"] = bare = bare_span(500)
        numbers["span_50ms"]["ratio_to_bare_script"] = numbers["span_50ms"]["span_s"] / bare
    base64_bytes = file_bytes * 4 / 3
    numbers["image"]["bytes_ratio_to_base64_of_file"] = numbers["image"]["bytes_per_request"] / base64_bytes
    print(json.dumps({"benchmark": "overhead", "concurrency": CONCURRENCY, **numbers, "bars": BARS}, indent=2))


if __name__ == "__main__":
    main()
