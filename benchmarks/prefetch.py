"""Measure the preparation ahead of a slow model: samples of many pictures, decoded.

    python -m benchmarks.prefetch                    # one JSON object on standard output

Workloads: ``within`` (30 pictures a sample, 90 MB decoded; the budget holds 2) and ``beyond`` (109 pictures, 327 MB:
twice the budget, so that each is prepared alone). Bars: wall time of the asking of ``within`` at most 1.1 times the
larger of (all model time, all preparation time / preparing threads); compared with the same process with tiny
pictures, memory grows at most by the budget (or by one sample, if that is more) and 64 MB. The same runs are also
measured with the preparation inside the model's own loop.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.workload import UTILS, results_of, run_child
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, Response

MANY = UTILS.replace(
    '[str(Path(__file__).parent / doc["image"])]', '[str(Path(__file__).parent / name) for name in doc["images"]]'
)
PICTURE_MB = 1024 * 768 * 4 / 2**20
"""Bytes of an RGB pixel in Pillow."""
SLACK_MB = 64


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    documents: int
    pictures: int
    model_s: float
    budget_mb: int

    @property
    def bar_mb(self) -> float:
        return max(self.budget_mb, self.pictures * PICTURE_MB) + SLACK_MB


WORKLOADS = {made.name: made for made in (Workload("within", 40, 30, 0.2, 256), Workload("beyond", 10, 109, 0.5, 128))}


class Slow(Model):
    """Decodes pictures, then sleeps; ``ahead=False`` decodes in its own loop."""

    concurrency = 1

    def __init__(self, ahead: bool, model_s: float) -> None:
        self.ahead, self.model_s = ahead, model_s
        self.preparing_s = 0.0
        self._lock = threading.Lock()

    def prepare(self, request: Request) -> Request:
        return self._decoded(request) if self.ahead else request.with_payload(None, 0)

    def _decoded(self, request: Request) -> Request:
        from PIL import Image

        from lmms_eval.media.image import memory_bytes

        start = time.thread_time()
        images = [Image.open(path).convert("RGB") for path in request.build_messages().extract_media()[0]]
        with self._lock:
            self.preparing_s += time.thread_time() - start
        return request.with_payload(images, sum(map(memory_bytes, images)))

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while batch := stream.take(1):
            for request in batch:
                if not self.ahead:
                    self._decoded(request)
                time.sleep(self.model_s)
                yield Response(request.id, text="a0", finish_reason="stop")

    def identity(self) -> dict[str, Any]:
        return {"slow": self.ahead}

    def describe(self) -> dict[str, Any]:
        return {"preparing_s": self.preparing_s}


def write_task(folder: Path, load: Workload, tiny: bool) -> None:
    from benchmarks.workload import picture_task

    picture_task(folder, 1, load.pictures, "many")
    (folder / "utils.py").write_text(MANY, encoding="utf-8")
    if tiny:
        from PIL import Image

        for path in folder.glob("*.jpg"):
            Image.new("RGB", (8, 8)).save(path)
    with open(folder / "many.jsonl", "w", encoding="utf-8") as file:
        for number in range(load.documents):
            images = [f"many_{picture}.jpg" for picture in range(load.pictures)]
            file.write(json.dumps({"question": f"Number {number}?", "answer": "a0", "images": images}) + "\n")


def child(load: Workload, tasks: str, out: str, ahead: bool) -> None:
    from lmms_eval.config import build_config
    from lmms_eval.evaluator import run

    values = {
        "model": "slow", "tasks": "many", "include_path": tasks, "output_path": out, "prefetch_mb": load.budget_mb,
        "verbosity": "WARNING",
    }  # fmt: skip
    sys.exit(run(build_config(values), Slow(ahead, load.model_s)).exit_code)


def measure(work: Path, load: Workload, tasks: str, more: Sequence[str]) -> dict[str, float]:
    out = work / f"out-{load.name}-{tasks}{''.join(more)}"
    arguments = ["-m", "benchmarks.prefetch", "--child", str(work / tasks), "--workload", load.name, "--out", str(out)]
    finished = run_child([*arguments, *more])
    if finished.exit_code != 0:
        raise SystemExit(finished.output)
    results = results_of(out)
    return {
        "asking_s": results["timing"]["first_request_to_last_response"],
        "preparing_cpu_s": results["model"]["preparing_s"],
        "peak_mb": finished.peak_mb,
    }


def compared(load: Workload) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        write_task(work / "tasks", load, tiny=False)
        write_task(work / "tiny", load, tiny=True)
        on, off = measure(work, load, "tasks", ["--ahead"]), measure(work, load, "tasks", [])
        base_mb = measure(work, load, "tiny", ["--ahead"])["peak_mb"]
    ideal = max(load.documents * load.model_s, on["preparing_cpu_s"] / 2)
    return {
        "prefetch_on": on,
        "prefetch_off": off,
        "ideal_s": ideal,
        "ratio_to_ideal": on["asking_s"] / ideal,
        "ratio_off": off["asking_s"] / ideal,
        "budget_mb": load.budget_mb,
        "sample_mb": load.pictures * PICTURE_MB,
        "base_mb": base_mb,
        "peak_over_base_mb": on["peak_mb"] - base_mb,
        "bar_peak_over_base_mb": load.bar_mb,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workload", choices=WORKLOADS, nargs="*", default=list(WORKLOADS))
    parser.add_argument("--child")
    parser.add_argument("--out", default="")
    parser.add_argument("--ahead", action="store_true")
    given = parser.parse_args()
    if given.child:
        child(WORKLOADS[given.workload[0]], given.child, given.out, given.ahead)
    report = {name: compared(WORKLOADS[name]) for name in given.workload}
    print(json.dumps({"benchmark": "prefetch", **report, "bar_ratio_of_within": 1.1}, indent=2))


if __name__ == "__main__":
    main()
