"""Runs of ours and of the family: an output folder, a results file, a samples file, or a record (``.runs/KEY``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from lmms_eval.compare.readers.contract import Format, Looked
from lmms_eval.compare.readers.journals import JOURNALS, Journals
from lmms_eval.compare.readers.result_facts import Results
from lmms_eval.compare.readers.samples import ReadTask, is_sample, read_samples
from lmms_eval.compare.runs import RunRows
from lmms_eval.config import argument_text
from lmms_eval.errors import DataError
from lmms_eval.results.naming import RUNS
from lmms_eval.storage.lines import unsealed
from lmms_eval.utils import model_name_from_args

OWN, LMMS_EVAL, LM_EVAL = "lmms_eval", "lmms-eval family", "lm_eval"
"""Ours has the underline of its package; its results document says more than the family's."""
_STATE = "run.json"
SHOWN = 12
"""Runs that a refusal names."""


@dataclass(frozen=True, slots=True)
class _Naming:
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


_NAMINGS = (
    _Naming("DATE_results.json", "DATE_samples_TASK.jsonl"),  # ours and lmms-eval's
    _Naming("results_DATE.json", "samples_TASK_DATE.jsonl"),  # lm-eval's
)


def is_results(looked: Looked) -> bool:
    return {"results", "configs", "n-shot"} <= looked.document.keys()


def is_samples(looked: Looked) -> bool:
    return is_sample(looked.record)


def read_results(path: Path) -> RunRows:
    """Read the run that a results file tells of: from the samples beside it, else from the run's record.

    Raises:
        DataError: neither is there, or one of them cannot be read.
    """
    results = Results.read(path)
    journals = Journals(path.parent / RUNS / results.run_key) if results.is_own else None
    found: list[ReadTask] = []
    missing = []
    for task in results.tasks:
        samples = _samples_beside(path, task)
        if samples is not None:
            found.append(read_samples(samples, task, results.facts(task)))
        elif journals is not None and task in journals.tasks:
            found.append(journals.task(task, results.facts(task), results.early_stop(task)))
        else:
            missing.append(task)
    if not found:
        journal = f" nor its journal {RUNS}/{results.run_key}/{JOURNALS}" if journals is not None else ""
        raise DataError(f"{path}: neither samples of this run beside it (--log_samples){journal}")
    notes = journals.notes if journals is not None else ()
    if missing:
        notes += (f"without samples, and so left out: {', '.join(missing)}",)
    return _run(results.model or path.stem, path, found, results, notes)


def read_samples_file(path: Path) -> RunRows:
    """Read one samples file, with what the results file of its date stamp tells."""
    for naming in _NAMINGS:
        if (found := naming.task(path.name)) is not None:
            date, task = found
            beside = path.with_name(naming.results.replace("DATE", date))
            results = Results.read(beside) if beside.is_file() else Results({})
            name = results.model or path.stem
            return _run(name, path, [read_samples(path, task, results.facts(task))], results, ())
    read = read_samples(path, path.stem)
    read = replace(read, rows=replace(read.rows, is_called_after_file=True))
    return _run(path.stem, path, [read], Results({}), ())


def read_record(folder: Path) -> RunRows:
    """Read the record of a run: by its results where it has ended and they are beside it, else its journals alone.

    Raises:
        DataError: it holds no scored document.
    """
    state = _state(folder)
    beside = folder.parent.parent / f"{state.get('stamp')}_results.json"
    if state.get("state") == "complete" and beside.is_file() and Results.read(beside).run_key == folder.name:
        return replace(read_results(beside), source=str(folder))
    journals, results = Journals(folder), Results.of_record(state)
    tasks = [journals.task(task, results.facts(task), results.early_stop(task)) for task in journals.tasks]
    if not tasks:
        raise DataError(f"{folder}: no document of this run has been scored yet ({JOURNALS} hold none)")
    arguments = state.get("arguments")
    arguments = arguments if isinstance(arguments, Mapping) else {}
    name = model_name_from_args(argument_text(arguments.get("model_args") or "")) or arguments.get("model")
    note = "read from the journal, as far as the run has come"
    if not results.is_own:
        note += "; ranges and directions of metrics are not known there"
    return _run(str(name or folder.name), folder, tasks, results, (*journals.notes, note))


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
        for path in sorted(path for path in place.glob("*.json") if _date(path) is not None):
            results = Results.read(path)
            if results.tasks:
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


def is_of_run(file: Path, run: Path) -> bool:
    """Tell whether a file is named like one of the same run: the record beside it, results or samples of its date."""
    if run.is_dir():
        return run.parent.name == RUNS and file.parent == run.parent.parent and bool(_dates(file))
    return file.is_relative_to(run.parent / RUNS) or (file.parent == run.parent and bool(_dates(file) & _dates(run)))


def date_stamp(name: str) -> str | None:
    """Find the date stamp in the name of a results or samples file."""
    return min(_dates(Path(name)), default=None)


def _dates(path: Path) -> set[str]:
    found = {naming.date(path.name) for naming in _NAMINGS}
    found |= {task[0] for naming in _NAMINGS if (task := naming.task(path.name)) is not None}
    return {date for date in found if date is not None}


@dataclass(frozen=True, slots=True)
class _Found:
    path: Path
    about: str


def _date(path: Path) -> str | None:
    return next((date for naming in _NAMINGS if (date := naming.date(path.name)) is not None), None)


def _samples_beside(results: Path, task: str) -> Path | None:
    for naming in _NAMINGS:
        date = naming.date(results.name)
        if date is not None:
            path = results.with_name(naming.samples.replace("DATE", date).replace("TASK", task))
            return path if "/" not in task and path.is_file() else None
    return None


def _run(name: str, source: Path, tasks: Iterable[ReadTask], results: Results, notes: tuple[str, ...]) -> RunRows:
    tasks = list(tasks)
    by_name = {task.rows.task: results.complete(task.rows) for task in tasks}
    groups = {
        group: present for group, leaves in results.groups.items() if (present := [x for x in leaves if x in by_name])
    }
    return RunRows(
        name=name,
        source=str(source),
        kind=_kind(tasks, results),
        tasks=by_name,
        groups=groups,
        results=results.content if results.is_own else None,
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


def _kind(tasks: Iterable[ReadTask], results: Results) -> str:
    if results.is_own or all(task.is_own for task in tasks):
        return OWN
    return LM_EVAL if "lm_eval_version" in results.content else LMMS_EVAL


RESULTS = Format(
    "a results file of lmms-eval or lm-eval (JSON with results, configs, n-shot)", is_results, read_results
)
SAMPLES = Format("samples of lmms-eval or lm-eval (JSONL with doc_id, filtered_resps)", is_samples, read_samples_file)
