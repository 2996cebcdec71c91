"""Runs of this project and of the lmms-eval family: a results file, a samples file, or a record (``.runs/KEY``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from lmms_eval.compare.readers.contract import FileHead, Format
from lmms_eval.compare.readers.samples import ReadResults, ReadTask, is_sample, read_lines, read_samples
from lmms_eval.compare.runs import RunRows
from lmms_eval.config import argument_text
from lmms_eval.errors import DataError
from lmms_eval.results.files import NAMINGS, RUNS, read_state, samples_beside
from lmms_eval.results.journals import JOURNALS, FileSamples, JoinedLines, Journals, SampleLines
from lmms_eval.results.run import has_documents_of, load_record, results_of_record
from lmms_eval.utils import model_name_from_args

OWN, LMMS_EVAL, LM_EVAL = "lmms_eval", "lmms-eval family", "lm_eval"
"""Kinds of runs. The first is this project's, whose results documents state more than the family's."""


def is_results(head: FileHead) -> bool:
    return {"results", "configs", "n-shot"} <= head.document.keys()


def is_samples(head: FileHead) -> bool:
    return is_sample(head.record)


def read_results(path: Path, keeps_rest: bool = False) -> RunRows:
    """Read the run of a results file from the samples files next to it, else from the run's record.

    Args:
        path: the results file.
        keeps_rest: whether unreadable parts, and missing samples, become notes instead of errors.

    Raises:
        DataError: neither samples nor record exist, or they cannot be read.
    """
    results = ReadResults.read(path)
    record = path.parent / RUNS / results.run_key
    journals = Journals(record) if results.is_own and has_documents_of(record, path) else None
    found: list[ReadTask] = []
    missing = []
    damaged: list[str] = []
    for task in results.tasks:
        samples = samples_beside(path, task)
        if samples is not None:
            lines = FileSamples(samples, is_strict=not keeps_rest)
            try:
                found.append(read_lines(lines, task, results.facts(task), keeps_rest=keeps_rest))
            except DataError as error:
                if not keeps_rest:
                    raise
                damaged.append(str(error))
            if lines.damaged:
                damaged.append(f"{samples}: {lines.damaged} damaged lines are skipped")
        elif journals is not None and task in journals.tasks:
            found.append(_from_journal(journals.counted(task, results.content), task, results))
        else:
            missing.append(task)
    if not found and not keeps_rest:
        journal = f" nor its journal {RUNS}/{results.run_key}/{JOURNALS}" if results.is_own else ""
        raise DataError(f"{path}: found neither samples of this run next to it (--log_samples){journal}")
    notes = (*damaged, *(journals.notes if journals is not None else ()))
    if missing:
        notes += (f"without samples, and so left out: {', '.join(missing)}",)
    return _run(results.model or path.stem, path, found, results, notes)


def read_samples_file(path: Path, keeps_rest: bool = False) -> RunRows:
    """Read one samples file, with the facts of the results file of the same date stamp.

    Args:
        path: the file.
        keeps_rest: whether lines that are not samples become notes instead of errors.
    """
    for naming in NAMINGS:
        if (found := naming.task(path.name)) is not None:
            date, task = found
            beside = path.with_name(naming.results.replace("DATE", date))
            results = ReadResults.read(beside) if beside.is_file() else ReadResults({})
            name = results.model or path.stem
            return _run(name, path, [read_samples(path, task, results.facts(task), keeps_rest=keeps_rest)], results, ())
    read = read_samples(path, path.stem, keeps_rest=keeps_rest)
    read = replace(read, rows=replace(read.rows, is_called_after_file=True))
    return _run(path.stem, path, [read], ReadResults({}), ())


def read_record(folder: Path) -> RunRows:
    """Read the record of a run: by its results file if the run ended and the file exists, else its journals alone.

    Raises:
        DataError: the record has no scored document.
    """
    finished = results_of_record(folder)
    if finished is not None:
        return replace(read_results(finished), source=str(folder))
    run, results = load_record(folder), ReadResults.of_record(read_state(folder))
    tasks = [_from_journal(JoinedLines(task.sources), name, results) for name, task in run.tasks.items()]
    if not tasks:
        raise DataError(f"{folder}: no document of this run has been scored yet ({JOURNALS} have none)")
    note = "read from the journal, as far as the run has come"
    if not results.is_own:
        note += "; ranges and directions of metrics are not known there"
    return _run(run.name, folder, tasks, results, (*run.notes, note))


def record_name(folder: Path, state: Mapping[str, Any]) -> str:
    """Return the name of a record's run: its model."""
    arguments = state.get("arguments")
    arguments = arguments if isinstance(arguments, Mapping) else {}
    name = model_name_from_args(argument_text(arguments.get("model_args") or "")) or arguments.get("model")
    return str(name or folder.name)


def _from_journal(lines: SampleLines, task: str, results: ReadResults) -> ReadTask:
    """Read a task from the journals, which have no other keys than metrics."""
    return read_lines(lines, task, replace(results.facts(task), metrics=None))


def is_of_run(file: Path, run: Path) -> bool:
    """Return whether a file belongs to a run by its name: its record, or results and samples of its date."""
    if run.is_dir():
        return run.parent.name == RUNS and file.parent == run.parent.parent and bool(_dates(file))
    return file.is_relative_to(run.parent / RUNS) or (file.parent == run.parent and bool(_dates(file) & _dates(run)))


def date_stamp(name: str) -> str | None:
    """Return the date stamp in the name of a results or samples file."""
    return min(_dates(Path(name)), default=None)


def _dates(path: Path) -> set[str]:
    found = {naming.date(path.name) for naming in NAMINGS}
    found |= {task[0] for naming in NAMINGS if (task := naming.task(path.name)) is not None}
    return {date for date in found if date is not None}


def _run(name: str, source: Path, tasks: Iterable[ReadTask], results: ReadResults, notes: tuple[str, ...]) -> RunRows:
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


def _kind(tasks: Iterable[ReadTask], results: ReadResults) -> str:
    if results.is_own or all(task.is_own for task in tasks):
        return OWN
    return LM_EVAL if "lm_eval_version" in results.content else LMMS_EVAL


RESULTS = Format(
    "a results file of lmms-eval or lm-eval (JSON with results, configs, n-shot)", is_results, read_results
)
SAMPLES = Format("samples of lmms-eval or lm-eval (JSONL with doc_id, filtered_resps)", is_samples, read_samples_file)
