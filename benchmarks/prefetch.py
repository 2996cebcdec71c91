"""Preparation ahead of the model: 30 pictures a sample, a model that takes 200 ms a sample.

    python -m benchmarks.prefetch                    # one JSON object on standard output

Bar: wall time of the asking at most 1.1 times the larger of (all model time, all preparation time / preparing threads);
memory of what is prepared within the budget. Beside it the same run with the preparation inside the model's own loop.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.workload import UTILS, results_of, run_child
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, Response

DOCUMENTS, PICTURES, MODEL_S, BUDGET_MB = 40, 30, 0.2, 256
MANY = UTILS.replace(
    '[str(Path(__file__).parent / doc["image"])]', '[str(Path(__file__).parent / name) for name in doc["images"]]'
)


class Slow(Model):
    """Decodes pictures, then takes 200 ms a sample; ``ahead=False`` decodes in its own loop."""

    concurrency = 1

    def __init__(self, ahead: bool) -> None:
        self.ahead = ahead
        self.preparing_s = 0.0
        self._lock = threading.Lock()

    def prepare(self, request: Request) -> Request:
        return self._decoded(request) if self.ahead else request.with_payload(None, 0)

    def _decoded(self, request: Request) -> Request:
        from PIL import Image

        start = time.thread_time()
        images = [Image.open(path).convert("RGB") for path in request.build_messages().extract_media()[0]]
        with self._lock:
            self.preparing_s += time.thread_time() - start
        return request.with_payload(images, sum(3 * image.width * image.height for image in images))

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while batch := stream.take(1):
            for request in batch:
                if not self.ahead:
                    self._decoded(request)
                time.sleep(MODEL_S)
                yield Response(request.id, text="a0", finish_reason="stop")

    def identity(self) -> dict[str, Any]:
        return {"slow": self.ahead}

    def describe(self) -> dict[str, Any]:
        return {"preparing_s": self.preparing_s}


def write_task(folder: Path) -> None:
    from benchmarks.workload import picture_task

    picture_task(folder, 1, PICTURES, "many")
    (folder / "utils.py").write_text(MANY, encoding="utf-8")
    with open(folder / "many.jsonl", "w", encoding="utf-8") as file:
        for number in range(DOCUMENTS):
            images = [f"many_{picture}.jpg" for picture in range(PICTURES)]
            file.write(json.dumps({"question": f"Number {number}?", "answer": "a0", "images": images}) + "\n")


def child(tasks: str, out: str, ahead: bool) -> None:
    from lmms_eval.config import build_config
    from lmms_eval.evaluator import run

    values = {
        "model": "slow", "tasks": "many", "include_path": tasks, "output_path": out, "prefetch_mb": BUDGET_MB,
        "verbosity": "WARNING",
    }  # fmt: skip
    sys.exit(run(build_config(values), Slow(ahead)).exit_code)


def measure(work: Path, ahead: bool) -> dict[str, float]:
    out = work / f"out-{ahead}"
    arguments = ["-m", "benchmarks.prefetch", "--child", str(work / "tasks"), "--out", str(out)]
    finished = run_child([*arguments, *(["--ahead"] if ahead else [])])
    if finished.exit_code != 0:
        raise SystemExit(finished.output)
    results = results_of(out)
    return {
        "asking_s": results["timing"]["first_request_to_last_response"],
        "preparing_cpu_s": results["model"]["preparing_s"],
        "peak_mb": finished.peak_mb,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--child")
    parser.add_argument("--out", default="")
    parser.add_argument("--ahead", action="store_true")
    given = parser.parse_args()
    if given.child:
        child(given.child, given.out, given.ahead)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        write_task(work / "tasks")
        on, off = measure(work, ahead=True), measure(work, ahead=False)
    ideal = max(DOCUMENTS * MODEL_S, on["preparing_cpu_s"] / 2)
    report = {
        "benchmark": "prefetch",
        "prefetch_on": on,
        "prefetch_off": off,
        "ideal_s": ideal,
        "ratio_to_ideal": on["asking_s"] / ideal,
        "ratio_off": off["asking_s"] / ideal,
        "budget_mb": BUDGET_MB,
        "bar": 1.1,
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
