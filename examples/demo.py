"""Run the demonstration: MEGA-Bench questions of our own, without network, key or GPU.

Two runs: ``baseline`` with the reference answers (checks that the scoring gives full marks), then the vision-language
model that the package ships, through the ordinary ``hf`` back end. It is tiny and was trained on drawings like these
(``examples/tiny_vlm/``), so it scores high on some tasks and 0 on others.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path


def evaluate(title: str, model: str, model_args: str, out: Path, *more: str) -> int:
    command = [
        sys.executable, "-m", "lmms_eval", "--model", model, "--model_args", model_args, "--tasks", "megabench_demo",
        "--output_path", str(out), "--log_samples", *more,
    ]  # fmt: skip
    print(f"\n=== {title}\n$ lmms-eval {' '.join(command[3:])}\n", flush=True)
    return subprocess.run(command, check=False, env={**os.environ, "HF_HUB_OFFLINE": "1"}).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo_outputs"))
    out = parser.parse_args().out
    code = evaluate("1 of 2: reference answers (baseline, strategy=gold)", "baseline", "strategy=gold", out / "gold")
    if code:
        return code
    arguments = "pretrained=embedded,dtype=float32,batch_size=8"
    code = evaluate("2 of 2: the embedded model", "hf", arguments, out / "hf", "--gen_kwargs", "max_new_tokens=96")
    print(f"\nResults, samples and the submission files are below {out}/ (see docs/results.md).")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
