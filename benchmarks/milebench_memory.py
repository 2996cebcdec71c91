"""Measure memory and time of MileBench's largest samples: 109 pictures of 1024x768, at two prefetch budgets.

    python -m benchmarks.milebench_memory      # one JSON object on standard output; exit code 1 if the bar is missed

A run of ``milebench_gpr1200`` over drawn data, with a model that decodes every picture and answers at once, is compared
with the bare decoding of the same pictures in a loop. Bar: compared with the same run with tiny pictures, the peak
memory grows at most by the budget (or by one sample, if that is more) and 64 MB.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.prefetch import PICTURE_MB, SLACK_MB, Slow
from benchmarks.workload import results_of, run_child

NAME, SAMPLES, PICTURES = "GPR1200", 8, 109
BUDGETS_MB = (256, 1024)


def write_data(root: Path, size: tuple[int, int]) -> list[Path]:
    """Write the data set with the same pictures in every sample and return the pictures."""
    import random

    from PIL import Image

    folder = root / NAME / "images"
    folder.mkdir(parents=True)
    source = random.Random(0)
    paths = []
    for number in range(PICTURES):
        small = Image.frombytes("RGB", (64, 48), source.randbytes(64 * 48 * 3))
        paths.append(folder / f"{number}.jpg")
        small.resize(size, Image.Resampling.BICUBIC).save(paths[-1], quality=80)
    names = [path.name for path in paths]
    context = "".join(f"Picture {number}: {{image#{number}}}\n" for number in range(1, PICTURES + 1))
    instance = {"context": context, "images_path": names, "choice_list": names[:5]}
    rows = [
        {
            "sample_id": number, "task_instruction_id": 0, "task_instance": instance, "response": names[0],
            "image_quantity_level": "Many",
        }
        for number in range(SAMPLES)
    ]  # fmt: skip
    meta = {"question_type": "multi-choice", "task_instruction": ["Which picture is it?"], "num_sample": SAMPLES}
    (root / NAME / f"{NAME}.json").write_text(json.dumps({"meta_data": meta, "data": rows}), encoding="utf-8")
    return paths


def child(root: str, out: str, budget_mb: int) -> None:
    from lmms_eval.config import build_config
    from lmms_eval.evaluator import run

    values = {
        "model": "slow", "tasks": f"milebench_{NAME.lower()}", "data_root": root, "output_path": out,
        "prefetch_mb": budget_mb, "verbosity": "WARNING",
    }  # fmt: skip
    sys.exit(run(build_config(values), Slow(ahead=True, model_s=0.0)).exit_code)


def measure(root: Path, out: Path, budget_mb: int) -> dict[str, float]:
    finished = run_child(
        ["-m", "benchmarks.milebench_memory", "--child", str(root), "--out", str(out), "--budget", str(budget_mb)]
    )
    if finished.exit_code != 0:
        raise SystemExit(finished.output)
    asking_s = results_of(out)["timing"]["first_request_to_last_response"]
    return {"asking_s": asking_s, "wall_s": finished.wall_s, "peak_mb": finished.peak_mb}


def bare_decoding_s(paths: list[Path]) -> float:
    from PIL import Image

    start = time.monotonic()
    for _ in range(SAMPLES):
        for path in paths:
            Image.open(path).convert("RGB")
    return time.monotonic() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--child")
    parser.add_argument("--out", default="")
    parser.add_argument("--budget", type=int, default=0)
    given = parser.parse_args()
    if given.child:
        child(given.child, given.out, given.budget)
    report: dict[str, Any] = {"benchmark": "milebench_memory", "samples": SAMPLES, "pictures": PICTURES}
    report["sample_mb"] = PICTURES * PICTURE_MB
    is_good = True
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        paths = write_data(work / "data", (1024, 768))
        write_data(work / "tiny", (8, 8))
        report["bare_decoding_s"] = bare_decoding_s(paths)
        for budget_mb in BUDGETS_MB:
            base = measure(work / "tiny", work / f"base-{budget_mb}", budget_mb)["peak_mb"]
            found = measure(work / "data", work / f"out-{budget_mb}", budget_mb)
            over, bar = found["peak_mb"] - base, max(budget_mb, report["sample_mb"]) + SLACK_MB
            report[f"budget_{budget_mb}_mb"] = {**found, "peak_over_base_mb": over, "bar_peak_over_base_mb": bar}
            is_good = is_good and over <= bar
    print(json.dumps(report, indent=2))
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
