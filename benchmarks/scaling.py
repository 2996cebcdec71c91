"""Measure time and memory over the number of documents, with a model that does nothing and with sample logging.

    python -m benchmarks.scaling                    # one JSON object; exit code 1 if a bar is missed
    python -m benchmarks.scaling --sizes 1000000      # minutes
    python -m benchmarks.scaling --small_pictures 100000 --sizes

Bars: peak memory at most 300 MB for text documents, up to a million of them; with pictures, at most the prefetch budget
and 150 MB. ``--small_pictures N``: instead of 2,000 pictures of 1024x768, N pictures of 32x32, each a file of its own.
Processor time for each document should not depend on their number (``marginal_cpu_ms_per_document``).
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.workload import picture_task, results_of, run_child, text_task
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, Response

SIZES = (1_000, 10_000, 100_000)
PICTURES = 2_000
PREFETCH_MB = 64
DIFFERENT = 1_000
"""Small pictures that are different files; the others are further names of these."""
BAR_TEXT_MB, BAR_OVER_BUDGET_MB = 300, 150


class NoOp(Model):
    """Answers every request with the same text, and decodes pictures in preparation as a local model does."""

    concurrency = 64

    def __init__(self, decode: bool = False) -> None:
        self.decode = decode

    def prepare(self, request: Request) -> Request:
        messages = request.build_messages()
        if not self.decode:
            return request.with_payload(messages.text(), 64)
        from lmms_eval.media import load_image

        images = [load_image(url) for url in messages.extract_media()[0]]
        return request.with_payload(images, sum(image.width * image.height * 3 for image in images))

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while batch := stream.take(64):
            for request in batch:
                yield Response(request.id, text="a0", finish_reason="stop")


def small_picture_task(folder: Path, documents: int) -> str:
    """Write a task of ``documents`` pictures of 32x32, each with a path of its own (links to a thousand files)."""
    from PIL import Image

    name = picture_task(folder, 1, 1, "bench_small")
    source = random.Random(0)
    with open(folder / f"{name}.jsonl", "w", encoding="utf-8") as file:
        for number in range(documents):
            path = folder / f"small_{number}.png"
            if number < DIFFERENT:
                Image.frombytes("RGB", (32, 32), source.randbytes(32 * 32 * 3)).save(path)
            else:
                path.hardlink_to(folder / f"small_{number % DIFFERENT}.png")
            row = {"question": f"Picture {number}?", "answer": f"a{number}", "image": path.name}
            file.write(json.dumps(row) + "\n")
    return name


def child(task: str, tasks: str, out: str, decode: bool) -> None:
    """Measure one run in a separate process."""
    from lmms_eval.config import build_config
    from lmms_eval.evaluator import run

    config = build_config(
        {
            "model": "noop", "tasks": task, "include_path": tasks, "output_path": out, "log_samples": True,
            "prefetch_mb": PREFETCH_MB, "verbosity": "WARNING",
        }
    )  # fmt: skip
    report = run(config, NoOp(decode))
    sys.exit(report.exit_code)


def measure(work: Path, task: str, documents: int, decode: bool) -> dict[str, float]:
    out = work / f"out-{task}"
    arguments = ["-m", "benchmarks.scaling", "--child", task, "--tasks", str(work / "tasks"), "--out", str(out)]
    finished = run_child([*arguments, *(["--decode"] if decode else [])])
    if finished.exit_code != 0:
        sys.stderr.write(finished.output)
        raise SystemExit(f"{task} ended with code {finished.exit_code}")
    timing = results_of(out)["timing"]
    return {
        "documents": documents,
        "wall_s": finished.wall_s,
        "cpu_s": finished.cpu_s,
        "cpu_ms_per_document": 1000 * finished.cpu_s / documents,
        "peak_mb": finished.peak_mb,
        "ask_s": timing["ask"],
        "aggregate_s": timing["aggregate"],
    }


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--child")
    parser.add_argument("--tasks", default="")
    parser.add_argument("--out", default="")
    parser.add_argument("--decode", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--small_pictures", type=int, metavar="N")
    given = parser.parse_args()
    if given.child:
        child(given.child, given.tasks, given.out, given.decode)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        text = []
        for size in given.sizes:
            name = text_task(work / "tasks", size, f"bench_text_{size}")
            text.append(measure(work, name, size, decode=False))
        n_pictures = given.small_pictures or PICTURES
        if given.small_pictures:
            picture_name = small_picture_task(work / "tasks", n_pictures)
        else:
            picture_name = picture_task(work / "tasks", n_pictures)
        pictures = measure(work, picture_name, n_pictures, decode=True)
    growth = [
        (later["cpu_s"] - text[0]["cpu_s"]) / (later["documents"] - text[0]["documents"]) * 1000 for later in text[1:]
    ]
    report = {
        "benchmark": "scaling",
        "text": text,
        "marginal_cpu_ms_per_document": growth,
        "pictures": {**pictures, "prefetch_budget_mb": PREFETCH_MB},
        "bars_mb": {"text": BAR_TEXT_MB, "pictures": PREFETCH_MB + BAR_OVER_BUDGET_MB},
        "is_within_bars": all(one["peak_mb"] <= BAR_TEXT_MB for one in text)
        and pictures["peak_mb"] <= PREFETCH_MB + BAR_OVER_BUDGET_MB,
    }
    print(json.dumps(report, indent=2))
    return 0 if report["is_within_bars"] else 1


if __name__ == "__main__":
    sys.exit(main())
