"""Run every check of a release and print a table. A step that fails does not keep the others from running.

``make release-check``; ``--tests`` also runs the whole suite. Distributions are left in ``build/release/dist``.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "release"
TOOLS = ("build", "twine")
_COLOUR = re.compile(r"\x1b\[[\d;]*m")  # some tools colour their output regardless of options
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:xdist")


@dataclass(frozen=True, slots=True)
class Step:
    """A check: its name, and a function that builds its commands when it runs. All must end with 0."""

    name: str
    commands: Callable[[], Sequence[Sequence[str | Path]]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a step ended."""

    name: str
    seconds: float
    says: str
    passed: bool


def steps(with_tests: bool) -> list[Step]:
    """List the checks in their order."""
    listed = [
        Step("lint, types, imports", lambda: [["make", "-s", "lint"]]),
        Step("site", lambda: [["make", "-s", "docs"]]),
        Step("schemas", lambda: [[*PYTEST, "tests/results/schema"]]),
        Step("public API", lambda: [[*PYTEST, "tests/test_public_api.py"]]),
        Step("versions, files, workflows", lambda: [[*PYTEST, "tests/test_release.py", "tests/test_dependencies.py"]]),
        Step("constraints, every Python", lambda: [[sys.executable, "-m", "release.constraints", "--check"]]),
        Step("wheel and sdist", _building),
        Step("metadata", lambda: [[_tool("python"), "-m", "twine", "check", "--strict", *_distributions()]]),
        Step("contents", lambda: [[sys.executable, "-m", "release.contents", *_distributions()]]),
        Step("install, version, demo, scoring script", _walking),
    ]
    return [*listed, Step("tests", lambda: [["make", "-s", "test"]])] if with_tests else listed


def _building() -> list[list[str | Path]]:
    shutil.rmtree(BUILD, ignore_errors=True)
    pip: list[str | Path] = [
        _tool("python"),
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        "-c",
        "constraints.txt",
    ]
    return [
        [sys.executable, "-m", "venv", BUILD / "tools"],
        [*pip, *TOOLS],
        [_tool("python"), "-m", "build", "--outdir", BUILD / "dist", "."],
    ]


def _walking() -> list[list[str | Path]]:
    [wheel] = (BUILD / "dist").glob("*.whl")
    return [[sys.executable, "-m", "release.walk", wheel, "--constraints", ROOT / "constraints.txt"]]


def _tool(name: str) -> Path:
    return BUILD / "tools" / "bin" / name


def _distributions() -> list[Path]:
    return sorted((BUILD / "dist").glob("lmms_eval-*"))


def taken(step: Step) -> Outcome:
    """Run a step. Its output goes to a file, and to the screen if it fails."""
    start, said = time.monotonic(), ""
    try:
        for command in step.commands():
            done = subprocess.run(
                [str(word) for word in command], cwd=ROOT, env={**os.environ, "NO_COLOR": "1"}, capture_output=True,
                text=True, check=False,
            )  # fmt: skip
            said = _COLOUR.sub("", done.stdout.strip() or done.stderr.strip())
            if done.returncode:
                shown = f"{done.stdout}{done.stderr}".strip()[-4000:]
                print(f"--- {step.name}: {' '.join(map(str, command))}\n{shown}\n", flush=True)
                return Outcome(step.name, time.monotonic() - start, f"exit code {done.returncode}", False)
    except (OSError, ValueError) as error:  # an earlier step has failed to produce its files
        return Outcome(step.name, time.monotonic() - start, str(error), False)
    return Outcome(step.name, time.monotonic() - start, said.splitlines()[-1] if said else "", True)


def table(outcomes: Sequence[Outcome]) -> str:
    """Format the outcomes as a table, one line each."""
    width = max(len(one.name) for one in outcomes)
    return "\n".join(
        f"{'passed' if one.passed else 'FAILED'}  {one.name:{width}}  {one.seconds:6.0f} s  {one.says[:100]}"
        for one in outcomes
    )


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", action="store_true", help="run the whole suite, too")
    outcomes = []
    for step in steps(parser.parse_args(words).tests):
        print(f"{step.name} ...", flush=True)
        outcomes.append(taken(step))
    print(table(outcomes))
    return 0 if all(one.passed for one in outcomes) else 1


if __name__ == "__main__":
    raise SystemExit(main())
