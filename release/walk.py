"""Take a new user's first steps with a wheel in an empty environment: version, demonstration, a scoring script.

The checkout is not on the path: the commands run in an empty folder.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEMONSTRATIONS = ("megabench_demo", "milebench_demo")
"""Demonstrations that need no extra."""


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment with the package, and the folder where its commands run."""

    bin: Path
    cwd: Path

    def run(self, *words: str | Path) -> str:
        """Run a command of the environment. Raises ``SystemExit`` with its last lines if it fails."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
        done = subprocess.run(
            [str(self.bin / words[0]), *map(str, words[1:])], cwd=self.cwd, capture_output=True, text=True, check=False,
            env={**environment, "HF_HUB_OFFLINE": "1", "OPENAI_API_KEY": ""},
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(
                f"{' '.join(map(str, words))}: exit code {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}"
            )
        return done.stdout


def install(python: str, wheel: Path, environment: Path, constraints: Path | None) -> Path:
    """Make an environment with the wheel by pip; returns its folder of commands."""
    subprocess.run([python, "-m", "venv", str(environment)], check=True)
    binaries = environment / "bin"
    held = [] if constraints is None else ["-c", str(constraints)]
    command = [str(binaries / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", *held, str(wheel)]
    subprocess.run(command, check=True)
    return binaries


def walk(installed: Installed, has_torch: bool = True) -> list[str]:
    """Run all steps and return a line for each.

    Raises:
        SystemExit: a command failed, or its result is wrong.
    """
    where = installed.run("python", "-c", "import lmms_eval; print(lmms_eval.__file__)").strip()
    if not Path(where).is_relative_to(installed.bin.parent):
        raise SystemExit(f"lmms_eval was imported from {where}, not from the environment")
    lines = [installed.run("lmms-eval", "--version").splitlines()[0]]
    for task in DEMONSTRATIONS:
        document = _evaluated(installed, task, "baseline", "strategy=gold")
        lines.append(
            f"{task}: {document['state']}, {sum(one['scored'] for one in document['outcomes'].values())} scored"
        )
    lines.append(_scored_again(installed))
    if has_torch:
        document = _evaluated(installed, "megabench_demo", "hf", "pretrained=embedded,dtype=float32,batch_size=8")
        lines.append(f"embedded model: macro mean {document['results']['megabench_demo']['macro_mean,none']:.4f}")
    installed.run("lmms-eval", "report", "out", "--out", "report")
    lines.append(f"report: {len((installed.cwd / 'report' / 'index.html').read_bytes()):,} bytes of page")
    return lines


def _evaluated(installed: Installed, task: str, model: str, arguments: str) -> dict[str, Any]:
    out = Path("out") / f"{model}_{task}"
    installed.run(
        "lmms-eval", "--model", model, "--model_args", arguments, "--tasks", task, "--log_samples",
        "--gen_kwargs", "max_new_tokens=96", "--output_path", out,
    )  # fmt: skip
    [path] = (installed.cwd / out).rglob("[0-9]*_results.json")
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if document["state"] != "complete":
        raise SystemExit(f"{task}: the run is {document['state']}")
    return document


def _scored_again(installed: Installed) -> str:
    """Score the file that the run of MEGA-Bench's demonstration left by the benchmark's script."""
    [submission] = (installed.cwd / "out" / "baseline_megabench_demo").rglob("submissions/*response*.json")
    printed = installed.run(
        "lmms-eval", "score", "--tasks", "megabench_demo", "--submission", submission, "--output_file", "scores.json"
    )
    json.loads((installed.cwd / "scores.json").read_text(encoding="utf-8"))
    return f"scoring script: {printed.strip().splitlines()[-1]}"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path, nargs="?")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--constraints", type=Path)
    parser.add_argument("--environment", type=Path, help="use this one, which has the package")
    parser.add_argument("--lean", action="store_true", help="the environment has no torch")
    chosen = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        if chosen.environment is not None:
            binaries = chosen.environment.resolve() / "bin"
        else:
            binaries = install(chosen.python, chosen.wheel.resolve(), Path(folder) / "environment", chosen.constraints)
            print(f"installed in {time.monotonic() - start:.0f} s")
        (Path(folder) / "empty").mkdir()
        for line in walk(Installed(binaries, Path(folder) / "empty"), not chosen.lean):
            print(line)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
