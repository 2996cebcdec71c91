"""List the functions, and their files, that are called to evaluate one document of each benchmark.

    python -m benchmarks.document_trace [--tasks mmie_demo ...] [--list] [--output FILE]

The command line evaluates one document of each demonstration task with the gold baseline in a separate process. Every
function of ``lmms_eval`` that is called there, or in a scoring process, is recorded. A function counts once, however
often it is called; comprehensions, lambdas and the bodies of modules and classes are part of their surroundings.
Prints JSON: counts by task and by package, with ``--list`` the functions.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.workload import run_child

TASKS = (
    "megabench_demo",
    "milebench_demo_actionsequence",
    "general_bench_demo_image_comprehension_sports_image_classification",
    "mmie_demo",
)
EXIT_UNSCORED = 3
"""Exit code of MMIE, which has no score without a judge."""
_TRACER = """
import os, sys, threading

_package, _seen = os.environ["TRACED_PACKAGE"], set()
_file = os.open(os.environ["TRACE_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def _note(frame, event, argument):
    code = frame.f_code
    if event == "call" and code not in _seen:
        _seen.add(code)
        is_function = code.co_flags & 3 == 3 and not code.co_name.startswith("<")  # no body of a class, no lambda
        if is_function and code.co_filename.startswith(_package):
            os.write(_file, f"{code.co_filename[len(_package):]}\\t{code.co_qualname}\\n".encode())

threading.setprofile(_note)
sys.setprofile(_note)
"""
"""Runs at the start of every child interpreter (``sitecustomize``). Lines are written at once, as runs end abruptly."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The functions that one task's document needs, as pairs of file and qualified name."""

    task: str
    functions: frozenset[tuple[str, str]]

    def as_dict(self, with_names: bool = False) -> dict[str, Any]:
        """Returns the counts, overall and by package."""
        files = {file for file, _ in self.functions}
        packages = Counter(file.split("/")[0] for file, _ in self.functions)
        found: dict[str, Any] = {
            "functions": len(self.functions),
            "files": len(files),
            "by_package": dict(sorted(packages.items())),
        }
        if with_names:
            found["names"] = [f"{file}: {name}" for file, name in sorted(self.functions)]
        return found


def trace(task: str, package: Path) -> Trace:
    """Evaluates one document of a task and returns what was called.

    Args:
        task: its name; the first document is taken.
        package: folder of the ``lmms_eval`` that runs.

    Raises:
        RuntimeError: the run failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "calls.txt"
        (Path(folder) / "sitecustomize.py").write_text(_TRACER, encoding="utf-8")
        paths = [folder, str(package.parent)]
        environment = {
            "PYTHONPATH": os.pathsep.join(paths),
            "TRACE_FILE": str(record),
            "TRACED_PACKAGE": f"{package}{os.sep}",
        }
        command = ["-P", "-m", "lmms_eval", "--model", "baseline", "--model_args", "strategy=gold"]
        command += ["--tasks", task, "--limit", "1", "--log_samples", "--output_path", str(Path(folder) / "out")]
        done = run_child(command, environment, Path(folder))
        is_unscored = done.exit_code == EXIT_UNSCORED and ", 0 failed of 1 " in done.output
        if done.exit_code and not is_unscored:
            raise RuntimeError(f"{task}: the run ended with code {done.exit_code}: {done.output[-2000:]}")
        lines = record.read_text(encoding="utf-8").splitlines()
    return Trace(task, frozenset((file, name) for file, _, name in (line.partition("\t") for line in lines)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the traces of the tasks that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=TASKS)
    parser.add_argument("--package", type=Path, default=Path(__file__).parents[1] / "lmms_eval")
    parser.add_argument("--list", action="store_true", help="name the functions")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args(arguments)
    traces = [trace(task, given.package.resolve()) for task in given.tasks]
    text = json.dumps(
        {"benchmark": "document_trace", "tasks": {t.task: t.as_dict(given.list) for t in traces}}, indent=2
    )
    if given.output is not None:
        given.output.write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
