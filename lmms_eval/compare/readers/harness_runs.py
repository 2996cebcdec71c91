"""Runs of this project and of the lmms-eval family: a results file, a samples file, or a record (``.runs/KEY``)."""

from __future__ import annotations

from dataclasses import replace as replace_run
from pathlib import Path

from msgspec.structs import replace

from lmms_eval.compare.readers.contract import FileHead, Format
from lmms_eval.compare.readers.samples import ReadTask, completed, is_own, is_sample, read_lines
from lmms_eval.compare.runs import RunRows
from lmms_eval.errors import DataError
from lmms_eval.results.facts import group_leaves, has_unequal_chances
from lmms_eval.results.files import NAMINGS, RUNS
from lmms_eval.results.journals import JOURNALS
from lmms_eval.results.run import Run, read_run, run_of_samples

OWN, LMMS_EVAL, LM_EVAL = "lmms_eval", "lmms-eval family", "lm_eval"
"""Kinds of runs. The first is this project's, whose results documents state more than the family's."""


def is_results(head: FileHead) -> bool:
    return {"results", "configs", "n-shot"} <= head.document.keys()


def is_samples(head: FileHead) -> bool:
    return is_sample(head.record)


def read_results(path: Path, keeps_rest: bool = False) -> RunRows:
    """Read the run of a results file, or of a record (``results.run.read_run``).

    Args:
        path: the file or folder.
        keeps_rest: whether unreadable parts, and missing samples, become notes instead of errors.

    Raises:
        DataError: the run has no samples, or they cannot be read.
    """
    return rows_of(read_run(path, is_strict=not keeps_rest), keeps_rest)


def read_samples_file(path: Path, keeps_rest: bool = False) -> RunRows:
    """Read one samples file, with the facts of the results file of the same date stamp.

    Args:
        path: the file.
        keeps_rest: whether lines that are not samples become notes instead of errors.
    """
    rows = rows_of(replace_run(run_of_samples(path, not keeps_rest), notes=()), keeps_rest)
    if any(naming.task(path.name) is not None for naming in NAMINGS):
        return rows
    return replace(rows, tasks={name: replace(task, is_called_after_file=True) for name, task in rows.tasks.items()})


def rows_of(run: Run, keeps_rest: bool = False) -> RunRows:
    """Return a run in the form that comparisons use.

    Args:
        run: the run.
        keeps_rest: whether unreadable parts, and missing samples, become notes instead of errors.

    Raises:
        DataError: the run has no samples, or they cannot be read.
    """
    found: list[ReadTask] = []
    notes: list[str] = []
    for name, task in run.tasks.items():
        try:
            found.append(read_lines(task.lines, name, task.keys, keeps_rest=keeps_rest))
        except DataError as error:
            if not keeps_rest:
                raise
            notes.append(str(error))
        if task.lines.damaged:
            notes.append(f"{task.lines.where}: {task.lines.damaged} damaged lines are skipped")
    if not found and not keeps_rest:
        if not run.document:
            raise DataError(f"{run.source}: no document of this run has been scored yet ({JOURNALS} have none)")
        journal = f" nor its journal {RUNS}/{run.document['run_key']}/{JOURNALS}" if is_own(run.document) else ""
        raise DataError(f"{run.source}: found neither samples of this run next to it (--log_samples){journal}")
    notes += [*run.notes, *(note for task in found for note in task.notes)]
    if not run.document and run.source == run.record:
        note = "read from the journal, as far as the run has come"
        known = "" if is_own(run.facts) else "; ranges and directions of metrics are not known there"
        notes.append(note + known)
    kind = LM_EVAL if "lm_eval_version" in run.facts else LMMS_EVAL
    if is_own(run.facts) or all(task.is_own for task in found):
        kind = OWN
    tasks = {task.rows.task: completed(task.rows, run.facts) for task in found}
    unequal = [name for name in tasks if has_unequal_chances(run.facts, name)]
    why = "--sample N:neyman drew documents with unequal chances, so plain differences are not those of the list"
    if len(unequal) == len(tasks) > 0 and not keeps_rest:
        raise DataError(f"{run.source}: {why}; compare a whole run, or one with --sample N")
    notes += [f"{name}: left out: {why}" for name in unequal]
    tasks = {name: rows for name, rows in tasks.items() if name not in unequal}
    leaves = {group: [name for name in names if name in tasks] for group, names in group_leaves(run.facts).items()}
    return RunRows(
        name=run.name,
        source=str(run.source),
        kind=kind,
        tasks=tasks,
        groups={group: names for group, names in leaves.items() if names},
        results=run.facts if is_own(run.facts) else None,
        notes=tuple(notes),
    )


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


RESULTS = Format(
    "a results file of lmms-eval or lm-eval (JSON with results, configs, n-shot)", is_results, read_results
)
SAMPLES = Format("samples of lmms-eval or lm-eval (JSONL with doc_id, filtered_resps)", is_samples, read_samples_file)
