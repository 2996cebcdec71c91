"""Files of a run: names, and finding them in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from lmms_eval.errors import DataError
from lmms_eval.results.naming import RUNS
from lmms_eval.results.run_reader.document import model_of
from lmms_eval.storage.json_files import read_json
from lmms_eval.storage.lines import unsealed

STATE = "run.json"
SHOWN = 12
"""Runs that a refusal names."""


@dataclass(frozen=True, slots=True)
class Naming:
    """Names of the files of a run, where ``DATE`` stands for its date stamp."""

    results: str
    samples: str

    def date(self, name: str) -> str | None:
        """Find the date stamp in the name of a results file; ``None`` if it is not named like one."""
        before, _, after = self.results.partition("DATE")
        is_one = name.startswith(before) and name.endswith(after) and len(name) > len(before) + len(after)
        return name[len(before) : len(name) - len(after)] if is_one else None

    def task(self, name: str) -> tuple[str, str] | None:
        """Find date stamp and task in the name of a samples file."""
        if not name.endswith(".jsonl"):
            return None
        stem = name.removesuffix(".jsonl")
        if self.samples.startswith("DATE"):
            date, mark, task = stem.partition("_samples_")
        else:
            task, mark, date = stem.removeprefix("samples_").rpartition("_")
            mark = mark if stem.startswith("samples_") else ""
        return (date, task) if mark and date and task else None


NAMINGS = (
    Naming("DATE_results.json", "DATE_samples_TASK.jsonl"),  # ours and lmms-eval's
    Naming("results_DATE.json", "samples_TASK_DATE.jsonl"),  # lm-eval's
)


def results_date(name: str) -> str | None:
    """Find the date stamp in the name of a results file of any naming."""
    return next((date for naming in NAMINGS if (date := naming.date(name)) is not None), None)


def samples_beside(results: Path, task: str) -> Path | None:
    """Find the samples file of a task beside a results file."""
    if "/" in task:
        return None
    for naming in NAMINGS:
        date = naming.date(results.name)
        if date is not None:
            path = results.with_name(naming.samples.replace("DATE", date).replace("TASK", task))
            return path if path.is_file() else None
    return None


def read_state(folder: Path) -> Mapping[str, Any]:
    """Read ``run.json``; empty if it is missing or damaged, which the journals beside it survive."""
    try:
        content = unsealed((folder / STATE).read_bytes())
        found = orjson.loads(content) if content is not None else {}
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def run_mark(document: Mapping[str, Any]) -> str:
    """Tell a run from others in its folder: by its hash, else by the model's arguments and the tasks."""
    if "run_key" in document:
        return str(document["run_key"])
    config, tasks = document.get("config"), document.get("configs")
    arguments = config.get("model_args") if isinstance(config, Mapping) else None
    return repr((model_of(document), arguments, sorted(tasks) if isinstance(tasks, Mapping) else []))


def find_run(folder: Path) -> Path | None:
    """Find the run in a folder: its newest results file, or the record of one that has none.

    Raises:
        DataError: there are several runs.
    """
    runs = find_runs(folder)
    if len(runs) > 1:
        listed = "; ".join(f"{run.path.relative_to(folder)} ({run.about:.80})" for run in runs[:SHOWN])
        more = f"; and {len(runs) - SHOWN} more" if len(runs) > SHOWN else ""
        raise DataError(f"{folder} holds {len(runs)} runs: name one of them: {listed}{more}")
    return runs[0].path if runs else None


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A results file, or the folder of a record, and a few words about it."""

    path: Path
    about: str


def find_runs(folder: Path) -> list[FoundRun]:
    """Find the runs in a folder and one folder below: results files (of a run the newest), else records.

    Raises:
        DataError: a results file cannot be read.
    """
    if (folder / STATE).is_file():
        return [FoundRun(folder, "")]
    inner = [folder, *sorted(item for item in folder.iterdir() if item.is_dir() and item.name != RUNS)]
    finished: dict[str, FoundRun] = {}
    for place in inner:
        for path in sorted(path for path in place.glob("*.json") if results_date(path.name) is not None):
            document = read_json(path)
            tasks = document.get("configs") if isinstance(document, dict) else None
            if isinstance(tasks, dict) and tasks:
                finished[f"{place}/{run_mark(document)}"] = FoundRun(path, ", ".join(tasks))  # the newest is last
    records = [
        FoundRun(state.parent, f"state {read_state(state.parent).get('state', 'unknown')}")
        for place in inner
        for state in sorted((place / RUNS).glob(f"*/{STATE}"))
    ]
    return list(finished.values()) or records
