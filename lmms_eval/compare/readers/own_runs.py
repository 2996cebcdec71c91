"""Runs of ours: an output folder, a results file, a samples file, or the record of a run (``.runs/KEY``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from lmms_eval.compare.readers.contract import Format, Looked
from lmms_eval.compare.readers.journals import JOURNALS, Journals
from lmms_eval.compare.readers.own_facts import ENDING, Results
from lmms_eval.compare.readers.samples import ReadTask, is_sample, read_samples
from lmms_eval.compare.runs import RunRows
from lmms_eval.config import argument_text
from lmms_eval.errors import DataError
from lmms_eval.results.naming import RUNS
from lmms_eval.storage.lines import unsealed
from lmms_eval.utils import model_name_from_args

KIND = "lmms_eval"
_STATE = "run.json"
_MARK = "_samples_"
"""Between the date stamp and the task in the name of a samples file."""
SHOWN = 12
"""Runs that a refusal names."""


def is_own_results(looked: Looked) -> bool:
    return {"results", "configs", "run_key"} <= looked.document.keys()


def is_own_samples(looked: Looked) -> bool:
    return is_sample(looked.record) and ("status" in looked.record or "request_id" in looked.record)


def read_results(path: Path) -> RunRows:
    """Read the run that a results file tells of: from the samples beside it, else from the run's record.

    Raises:
        DataError: neither is there, or one of them cannot be read.
    """
    results = Results.read(path)
    stamp = path.name.removesuffix(ENDING)
    journals: Journals | None = None
    found: list[ReadTask] = []
    missing = []
    for task in results.tasks:
        samples = path.with_name(f"{stamp}{_MARK}{task}.jsonl")
        if samples.is_file():
            found.append(read_samples(samples, task, results.facts(task)))
            continue
        journals = journals or Journals(path.parent / RUNS / results.run_key)
        if task in journals.tasks:
            found.append(journals.task(task, results.facts(task)))
        else:
            missing.append(task)
    if not found:
        raise DataError(
            f"{path}: no samples of this run: neither {stamp}{_MARK}TASK.jsonl beside it (--log_samples) nor its "
            f"journal {RUNS}/{results.run_key}/{JOURNALS}"
        )
    notes = journals.notes if journals else ()
    if missing:
        notes += (f"without samples, and so left out: {', '.join(missing)}",)
    return _run(results.model or stamp, path, found, results, notes)


def read_own_samples(path: Path) -> RunRows:
    """Read one samples file, with what the results file of its date stamp tells."""
    stamp, mark, task = path.name.removesuffix(".jsonl").partition(_MARK)
    beside = path.with_name(f"{stamp}{ENDING}")
    results = Results.read(beside) if mark and beside.is_file() else Results({})
    task = task if mark else path.stem
    return _run(results.model or path.stem, path, [read_samples(path, task, results.facts(task))], results, ())


def read_record(folder: Path) -> RunRows:
    """Read the record of a run, finished or not, from its journals alone.

    Raises:
        DataError: it holds no scored document.
    """
    journals = Journals(folder)
    tasks = [journals.task(task, Results({}).facts(task)) for task in journals.tasks]
    if not tasks:
        raise DataError(f"{folder}: no document of this run has been scored yet ({JOURNALS} hold none)")
    arguments = _state(folder).get("arguments")
    arguments = arguments if isinstance(arguments, Mapping) else {}
    name = model_name_from_args(argument_text(arguments.get("model_args") or "")) or arguments.get("model")
    note = f"{folder}: read from the journal; ranges and directions of metrics are not known there"
    return _run(str(name or folder.name), folder, tasks, Results({}), (*journals.notes, note))


def find_run(folder: Path) -> Path | None:
    """Find the run in a folder: its newest results file, or the record of one that has none.

    Raises:
        DataError: there are several runs.
    """
    if (folder / _STATE).is_file():
        return folder
    inner = [folder, *sorted(item for item in folder.iterdir() if item.is_dir() and item.name != RUNS)]
    finished: dict[str, _Found] = {}
    for place in inner:
        for path in sorted(place.glob(f"*{ENDING}")):
            results = Results.read(path)
            if results.run_key:
                finished[f"{place}/{results.run_key}"] = _Found(path, ", ".join(results.tasks))  # the newest is last
    records = {
        str(state.parent): _Found(state.parent, f"state {_state(state.parent).get('state', 'unknown')}")
        for place in inner
        for state in sorted((place / RUNS).glob(f"*/{_STATE}"))
    }
    runs = list((finished or records).values())
    if len(runs) > 1:
        listed = "; ".join(f"{run.path.relative_to(folder)} ({run.about:.80})" for run in runs[:SHOWN])
        more = f"; and {len(runs) - SHOWN} more" if len(runs) > SHOWN else ""
        raise DataError(f"{folder} holds {len(runs)} runs: name one of them: {listed}{more}")
    return runs[0].path if runs else None


@dataclass(frozen=True, slots=True)
class _Found:
    path: Path
    about: str


def _run(name: str, source: Path, tasks: Iterable[ReadTask], results: Results, notes: tuple[str, ...]) -> RunRows:
    tasks = list(tasks)
    by_name = {task.rows.task: results.complete(task.rows) for task in tasks}
    groups = {
        group: present for group, leaves in results.groups.items() if (present := [x for x in leaves if x in by_name])
    }
    return RunRows(
        name=name,
        source=str(source),
        kind=KIND,
        tasks=by_name,
        groups=groups,
        results=results.content or None,
        notes=(*notes, *(note for task in tasks for note in task.notes)),
    )


def _state(folder: Path) -> Mapping[str, Any]:
    """``run.json``; empty if it is missing or damaged, which the journals beside it survive."""
    try:
        content = unsealed((folder / _STATE).read_bytes())
        found = orjson.loads(content) if content is not None else {}
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


RESULTS = Format(
    KIND, "a results file of lmms_eval (JSON with results, configs, run_key)", is_own_results, read_results
)
SAMPLES = Format(KIND, "samples of lmms_eval (JSONL with doc_id, status, metrics)", is_own_samples, read_own_samples)
