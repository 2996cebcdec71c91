"""Count the functions, files and calls that a run needs, and those that each further document needs.

    python -m benchmarks.document_trace [--tasks mmie_demo ...] [--list] [--output FILE]

The command line evaluates 1, 3 and 8 documents of each demonstration task with the gold baseline, in separate
processes. Every call of a function of ``lmms_eval`` is recorded, also in scoring processes. Comprehensions, lambdas and
the bodies of modules and classes are part of their surroundings, and a generator that is resumed is not called again.

A run is what one document needs from the command line to the results. A document's part is the difference of the other
two runs divided by five: a function belongs to it if it is called at least once more for each further document.
It is null for a task with fewer than eight documents. Prints JSON: counts by task and by package,
with ``--list`` the functions.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.workload import run_child

TASKS = (
    "megabench_demo",
    "milebench_demo_actionsequence",
    "general_bench_demo_image_comprehension_sports_image_classification",
    "mmie_demo",
)
FEW, MANY = 3, 8
"""Numbers of documents of the two runs that are compared."""
EXIT_UNSCORED = 3
"""Exit code of MMIE, which has no score without a judge."""
_TRACER = """
import dis, os, sys, threading

_package, _names, _resume = os.environ["TRACED_PACKAGE"], {}, dis.opmap.get("RESUME")
_file = os.open(os.environ["TRACE_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def _name(code):
    is_function = code.co_flags & 3 == 3 and not code.co_name.startswith("<")  # no body of a class, no lambda
    if not (is_function and code.co_filename.startswith(_package)):
        return b""
    return f"{code.co_filename[len(_package):]}\\t{code.co_qualname}\\n".encode()

def _note(frame, event, argument):
    if event == "call":
        code = frame.f_code
        line = _names.get(code)
        if line is None:
            line = _names[code] = _name(code)
        if line and not (code.co_flags & 0x2a0 and _is_resumed(code.co_code, frame.f_lasti)):
            os.write(_file, line)

def _is_resumed(instructions, place):
    return instructions[place] == _resume and instructions[place + 1] & 3 != 0

threading.setprofile(_note)
sys.setprofile(_note)
"""
"""Runs at the start of every child interpreter (``sitecustomize``). Lines are written at once, as runs end abruptly."""

Calls: TypeAlias = "Counter[tuple[str, str]]"
"""Number of calls by file and qualified name."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The calls of three runs over one task."""

    task: str
    one: Calls
    few: Calls
    many: Calls

    def of_document(self) -> dict[tuple[str, str], float]:
        """Return the calls of each function for one further document."""
        more = {function: count - self.few[function] for function, count in self.many.items()}
        return {function: count / (MANY - FEW) for function, count in more.items() if count >= MANY - FEW}

    def as_dict(self, with_names: bool = False) -> dict[str, Any]:
        """Return the counts of a run and of a document, each overall and by package."""
        found = {**_counts(self.one), "calls": self.one.total(), "document": None}
        if with_names:
            found["names"] = [f"{file}: {name}" for file, name in sorted(self.one)]
        if document := self.of_document():
            found["document"] = {**_counts(document), "calls": round(sum(document.values()), 1)}
            if with_names:
                found["document"]["names"] = _named(document)
        return found


def _counts(functions: Iterable[tuple[str, str]]) -> dict[str, Any]:
    files = [file for file, _ in functions]
    packages = Counter(file.split("/")[0] for file in files)
    return {"functions": len(files), "files": len(set(files)), "by_package": dict(sorted(packages.items()))}


def _named(calls: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Return the calls by the name of the function, most frequent first."""
    ordered = sorted(calls.items(), key=lambda item: (-item[1], item[0]))
    return {f"{file}: {name}": count for (file, name), count in ordered}


def trace(task: str, package: Path) -> Trace:
    """Evaluate 1, 3 and 8 documents of a task and return what was called.

    Args:
        task: name of the task; its first documents are taken.
        package: folder of the ``lmms_eval`` that runs.

    Raises:
        RuntimeError: a run failed.
    """
    one, few, many = (_calls(task, package, count) for count in (1, FEW, MANY))
    return Trace(task, one, few, many)


def _calls(task: str, package: Path, documents: int) -> Calls:
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "calls.txt"
        (Path(folder) / "sitecustomize.py").write_text(_TRACER, encoding="utf-8")
        paths = [folder, str(package.parent)]
        environment = {
            "PYTHONPATH": os.pathsep.join(paths),
            "TRACE_FILE": str(record),
            "TRACED_PACKAGE": f"{package}{os.sep}",
        }
        command = ["-P", "-m", "lmms_eval", "--model", "baseline", "--model_args", "strategy=gold", "--tasks", task]
        command += ["--limit", str(documents), "--log_samples", "--output_path", str(Path(folder) / "out")]
        done = run_child(command, environment, Path(folder))
        is_unscored = done.exit_code == EXIT_UNSCORED and f", 0 failed of {documents} " in done.output
        if done.exit_code and not is_unscored:
            raise RuntimeError(f"{task}: the run ended with code {done.exit_code}: {done.output[-2000:]}")
        lines = record.read_text(encoding="utf-8").splitlines()
    return Counter((file, name) for file, _, name in (line.partition("\t") for line in lines))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the traces of the tasks that the command line names."""
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
