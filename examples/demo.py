"""Run the demonstration: MEGA-Bench questions of our own, without network, key or GPU.

Two runs: ``baseline`` with the reference answers (checks that the scoring gives full marks), then the vision-language
model that the package ships, through the ordinary ``hf`` back end. It is tiny and was trained on drawings like these
(``examples/tiny_vlm/``), so it scores high on some tasks and 0 on others.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
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
    code = evaluate("2 of 2: the embedded model", "hf", arguments, out, "--gen_kwargs", "max_new_tokens=96")
    print(
        "\n".join(("", f"Results, samples and the submission files are in {out}/ (docs/results.md).", *next_steps(out)))
    )
    return code


def next_steps(out: Path) -> list[str]:
    """Return the commands to try next, as they are typed in this shell."""
    steps = [
        (f"lmms-eval report {shlex.quote(str(out))}", "every question with its picture, answers and scores"),
        ("lmms-eval ui", "a page to choose models and tasks, start runs and compare them"),
    ]
    own = Path(sys.prefix)
    if sys.prefix != sys.base_prefix and Path(shutil.which("lmms-eval") or "").parent != own / "bin":
        activate = own / "bin" / "activate"
        shown = activate.relative_to(Path.cwd()) if activate.is_relative_to(Path.cwd()) else activate
        steps.insert(0, (f"source {shlex.quote(str(shown))}", "the environment that make has set up"))
    width = max(len(command) for command, _ in steps)
    return ["Next:", *(f"  {command:{width}}  # {purpose}" for command, purpose in steps)]


if __name__ == "__main__":
    raise SystemExit(main())
