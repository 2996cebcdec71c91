"""Measure CPU and bytes of a picture sent to an API, by the way a task provides it, against a bare script.

    python -m benchmarks.pictures                                   # one JSON object on standard output
    python -m benchmarks.pictures --base TREE --rounds 5            # also measure another checkout
    python -m benchmarks.pictures --no_media                        # also without keeping media (``--no_media``)

Each document has its own picture (1024x768 JPEG). The stub server on loopback answers at once; 32 requests are
open. ``path``: the task gives the file's name; ``column``: the decoded picture of a parquet column;
``column_convert``: its ``convert("RGB")``; ``open`` and ``open_convert``: the task calls ``Image.open`` itself;
``drawing``: it draws on the picture, which has to be encoded. ``bare`` reads the same files in an aiohttp script.
CPU of a picture is that of a whole process minus that of a process over one picture, divided by the other pictures.
All processes of a round run one after the other; the numbers are medians over the rounds.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.workload import run_child
from tests.servers.stub import StubServer

CONCURRENCY = 32
SIZE = (1024, 768)
NO_MEDIA = "no_media"
"""Name of the runs of this checkout that keep no media."""
BARS = {"column_cpu_ms": 2.5, "bytes_ratio": 1.01, "path_to_bare": 1.2, "log_media": 1.03}
UTILS = """
from pathlib import Path

from PIL import Image, ImageDraw


def named(doc):
    return str(Path(__file__).parent / doc["name"])


def path(doc):
    return [named(doc)]


def column(doc):
    return [doc["image"]]


def column_convert(doc):
    return [doc["image"].convert("RGB")]


def open(doc):
    return [Image.open(named(doc))]


def open_convert(doc):
    return [Image.open(named(doc)).convert("RGB")]


def drawing(doc):
    image = doc["image"].convert("RGB")
    ImageDraw.Draw(image).rectangle((10, 10, 300, 200), outline="red", width=4)
    return [image]
"""
WAYS = ("path", "column", "column_convert", "open", "open_convert", "drawing")
BARE = """
import asyncio, base64, json, sys, aiohttp

url, folder, documents, concurrency = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


async def main():
    slots = asyncio.Semaphore(concurrency)

    async def ask(session, number):
        async with slots:
            with open(f"{folder}/{number}.jpg", "rb") as file:
                data = base64.b64encode(file.read()).decode()
            content = [
                {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{data}"}},
                {"type": "text", "text": f"Picture {number}? ANSWER=a{number}"},
            ]
            body = {"model": "stub", "messages": [{"role": "user", "content": content}], "max_tokens": 16}
            async with session.post(f"{url}/chat/completions", json=body) as answer:
                await answer.json()

    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(ask(session, number) for number in range(documents)))


asyncio.run(main())
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one picture."""

    cpu_ms: float
    request_bytes: float
    """Bytes of the whole body."""


def write_tasks(folder: Path, documents: int) -> float:
    """Write a task for each of ``WAYS`` over the same pictures and return the mean bytes of a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from PIL import Image, ImageChops

    folder.mkdir(parents=True, exist_ok=True)
    small = Image.frombytes("RGB", (256, 192), random.Random(0).randbytes(256 * 192 * 3))
    large = small.resize(SIZE, Image.Resampling.BICUBIC)
    rows: list[dict[str, Any]] = []
    for number in range(documents):
        buffer = io.BytesIO()
        ImageChops.offset(large, 3 * number, number).save(buffer, "JPEG", quality=80)  # no two pictures are equal
        (folder / f"{number}.jpg").write_bytes(buffer.getvalue())
        rows.append({
            "question": f"Picture {number}? ANSWER=a{number}", "answer": f"a{number}", "name": f"{number}.jpg",
            "image": {"bytes": buffer.getvalue(), "path": f"{number}.jpg"},
        })  # fmt: skip
    texts = {name: {"dtype": "string", "_type": "Value"} for name in ("question", "answer", "name")}
    features = {**texts, "image": {"_type": "Image"}}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    table = pa.Table.from_pylist(rows).replace_schema_metadata(metadata)
    pq.write_table(table, folder / "column.parquet")
    pq.write_table(table.drop_columns(["image"]).replace_schema_metadata(None), folder / "file.parquet")
    (folder / "utils.py").write_text(UTILS, encoding="utf-8")
    for way in WAYS:
        data = "file" if way in ("path", "open", "open_convert") else "column"
        (folder / f"pictures_{way}.yaml").write_text(
            f"task: pictures_{way}\ndataset_path: parquet\ndataset_kwargs:\n  data_files: {{test: {data}.parquet}}\n"
            "test_split: test\noutput_type: generate_until\ndoc_to_text: question\ndoc_to_target: answer\n"
            f"doc_to_visual: !function utils.{way}\ngeneration_kwargs: {{max_new_tokens: 16, until: []}}\n"
            "metric_list:\n  - {metric: exact_match, aggregation: mean, higher_is_better: true}\n",
            encoding="utf-8",
        )
    return statistics.mean(len(row["image"]["bytes"]) for row in rows)


def ask(work: Path, way: str, tree: str, limit: int, options: Sequence[str] = ()) -> tuple[float, float]:
    """Return the CPU seconds of one run over ``limit`` documents, and the bytes of a request."""
    tasks, environment = work / "tasks", {"OPENAI_API_KEY": "stub", **({"PYTHONPATH": tree} if tree else {})}
    with StubServer() as server:
        if way == "bare":
            finished = run_child(["-c", BARE, server.url, str(tasks), str(limit), str(CONCURRENCY)])
        else:
            out = tempfile.mkdtemp(dir=work)
            finished = run_child(
                [
                    *(["-P"] if tree else []), "-m", "lmms_eval", "--model", "openai", "--tasks", f"pictures_{way}",
                    "--include_path", str(tasks), "--output_path", out, "--log_samples", "--limit", str(limit),
                    "--model_args", f"model=stub,base_url={server.url},num_concurrent={CONCURRENCY}", *options,
                ],
                environment,
            )  # fmt: skip
        stats = server.stats()
    if finished.exit_code != 0 or stats["completed"] != limit:
        sys.stderr.write(finished.output)
        raise SystemExit(f"{way}: code {finished.exit_code}, {stats['completed']} of {limit} answered")
    return finished.cpu_s, stats["bytes"] / stats["total"]


def measure(work: Path, way: str, tree: str, documents: int) -> Cost:
    options = ["--no_media"] if tree == NO_MEDIA else []
    tree = "" if options else tree
    first, _ = ask(work, way, tree, 1, options)
    whole, request_bytes = ask(work, way, tree, documents, options)
    return Cost(1000 * (whole - first) / (documents - 1), request_bytes)


def report(costs: Sequence[Cost], bare: float, file_bytes: float) -> dict[str, float]:
    cpu = statistics.median(cost.cpu_ms for cost in costs)
    size = statistics.median(cost.request_bytes for cost in costs)
    return {
        "cpu_ms": round(cpu, 3),
        "cpu_to_bare": round(cpu / bare, 3),
        "request_bytes": round(size),
        "bytes_ratio_to_base64_of_file": round(size / (4 * -(-file_bytes // 3)), 4),
        "lowest_cpu_ms": round(min(cost.cpu_ms for cost in costs), 3),
    }


def run(documents: int, rounds: int, ways: Sequence[str], base: str = "", no_media: bool = False) -> dict[str, Any]:
    trees = {"this": "", **({"base": os.path.abspath(base)} if base else {})}
    trees |= {NO_MEDIA: NO_MEDIA} if no_media else {}
    bare: list[Cost] = []
    costs: dict[str, dict[str, list[Cost]]] = {name: {way: [] for way in ways} for name in trees}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        file_bytes = write_tasks(work / "tasks", documents)
        for _ in range(rounds):
            bare.append(measure(work, "bare", "", documents))
            for way in ways:
                for name, tree in trees.items():
                    costs[name][way].append(measure(work, way, tree, documents))
    bare_ms = statistics.median(cost.cpu_ms for cost in bare)
    return {
        "benchmark": "pictures", "documents": documents, "rounds": rounds, "concurrency": CONCURRENCY,
        "file_bytes": round(file_bytes), "bare": report(bare, bare_ms, file_bytes),
        **{name: {way: report(found[way], bare_ms, file_bytes) for way in ways} for name, found in costs.items()},
        **({"log_media": _ratios(costs, ways)} if no_media else {}),
        "bars": BARS,
    }  # fmt: skip


def _ratios(costs: dict[str, dict[str, list[Cost]]], ways: Sequence[str]) -> dict[str, float]:
    """Return the CPU with kept media to that without, by way and over all ways, of the medians over the rounds."""
    cpu = {
        name: {way: statistics.median(cost.cpu_ms for cost in costs[name][way]) for way in ways}
        for name in ("this", NO_MEDIA)
    }
    found = {way: cpu["this"][way] / cpu[NO_MEDIA][way] for way in ways}
    found["all"] = sum(cpu["this"].values()) / sum(cpu[NO_MEDIA].values())
    return {name: round(ratio, 4) for name, ratio in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ways", default=",".join(WAYS), help="comma list; default: all")
    parser.add_argument("--base", default="", help="another checkout, measured in the same rounds")
    parser.add_argument("--no_media", action="store_true", help="also measure runs that keep no media")
    given = parser.parse_args()
    found = run(given.documents, given.rounds, given.ways.split(","), given.base, given.no_media)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
