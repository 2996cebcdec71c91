"""Reads the runs of a report as far as possible. The report names the parts that cannot be read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from loguru import logger
from msgspec import Struct, field

from lmms_eval.compare.readers import harness_runs, read_runs
from lmms_eval.compare.readers.contract import FileHead
from lmms_eval.compare.readers.samples import is_own
from lmms_eval.compare.runs import RunRows
from lmms_eval.errors import DataError
from lmms_eval.results.facts import record_facts, sample_keys
from lmms_eval.results.files import RUNS, find_runs, read_state, run_path, state_of
from lmms_eval.results.run import Run, read_run, record_keys, results_of_record
from lmms_eval.results.sample import JudgePrompts, SampleKeys
from lmms_eval.storage.run_folder import has_live_owner
from lmms_eval.viewer.media import MediaFolders


class ReportRun(Struct, frozen=True):
    """One run of a report."""

    rows: RunRows
    document: Mapping[str, Any]
    """The results document, which is empty if the run has no results."""
    state: Mapping[str, Any]
    """The content of ``run.json`` with the current state, which is empty if the run has no record."""
    places: MediaFolders
    problems: tuple[str, ...] = ()
    """Sentences about things that could not be read."""
    prompts: JudgePrompts = field(default_factory=lambda: JudgePrompts(None))
    """Prompts of its judge, which are in its record."""

    @property
    def stated(self) -> Mapping[str, Any]:
        """The results document or, without results, the corresponding parts of the run's record."""
        return self.document or record_facts(self.state)

    def keys(self, task: str) -> SampleKeys:
        """Return the keys that type a task's samples. A record does not list all metrics of its journals."""
        return sample_keys(self.document, task) if self.document else record_keys(self.stated, task)


def read_report_runs(paths: Sequence[str], allowed: Sequence[Path] = ()) -> tuple[ReportRun, ...]:
    """Read all runs in files and folders. If some of several runs are damaged, the report names them.

    A run that several paths lead to is read once, and a line of the log reports that. Media of a run without a record
    are only shown from its own folder and from the ``allowed`` ones. Raises ``DataError`` if the only path is missing
    or damaged, or if no path holds a readable run. Raises ``UsageError`` if a file is of no known format, or needs a
    package that is not installed.
    """
    found: list[ReportRun] = []
    damaged: list[ReportRun] = []
    for place in map(run_path, paths):
        try:
            found += _runs_of(place, allowed)
        except DataError as error:
            if len(paths) == 1:
                raise
            rows = RunRows(name=place.name or str(place), source=str(place), kind="unreadable", tasks={})
            damaged.append(ReportRun(rows, {}, {}, MediaFolders((place,), ()), (str(error),)))
    found, damaged = list(_once(found)), list(_once(damaged))
    if not found:
        raise DataError("; ".join(problem for run in damaged for problem in run.problems))
    return (*found, *damaged)


def _once(runs: Sequence[ReportRun]) -> Iterator[ReportRun]:
    seen: set[Path] = set()
    for run in runs:
        place = Path(run.rows.source).resolve()
        if place in seen:
            logger.warning("{} is given more than once: the report holds it once", run.rows.source)
            continue
        seen.add(place)
        yield run


def _runs_of(path: Path, allowed: Sequence[Path]) -> Iterator[ReportRun]:
    if path.is_dir() and (found := find_runs(path)):
        for run in found:
            yield report_run(run.path, allowed)
    elif path.is_file() and harness_runs.is_results(FileHead(path)):
        yield report_run(path, allowed)
    elif path.is_file() and harness_runs.is_samples(FileHead(path)):
        yield _of_rows(harness_runs.read_samples_file(path, keeps_rest=True), path.parent, allowed)
    else:
        (rows,) = read_runs([str(path)])
        yield _of_rows(rows, path if path.is_dir() else path.parent, allowed)


def report_run(path: Path, allowed: Sequence[Path] = ()) -> ReportRun:
    """Read the run of a results file, of ours or of the family, or of a record.

    Raises ``DataError`` if the results file cannot be read. A record that cannot be read is a run with a problem.
    """
    try:
        run = read_run(path)
        rows = harness_runs.rows_of(run, keeps_rest=bool(run.document))
    except DataError as error:
        if not path.is_dir() or results_of_record(path) is not None:
            raise
        empty = RunRows(name=path.name, source=str(path), kind=harness_runs.OWN, tasks={})
        return ReportRun(empty, {}, _current(path), record_places(path, allowed), (str(error),))
    record, state = _record_of(run)
    prompts = JudgePrompts(record if state else None)
    return ReportRun(rows, run.document, state, media_places(run, allowed), rows.notes, prompts)


def _record_of(run: Run) -> tuple[Path, Mapping[str, Any]]:
    """Return the folder of a run's record, and the content of its ``run.json``, which is empty without a record."""
    record = run.record or run.source.parent / RUNS / str(run.document.get("run_key", ""))
    return record, _current(record) if is_own(run.facts) or not run.document else {}


def _current(record: Path) -> Mapping[str, Any]:
    """Return the content of ``run.json``. A run that no live process owns is not running, whatever it last wrote."""
    state = read_state(record)
    return {**state, "state": state_of(state, has_live_owner(record))} if state else {}


def media_places(run: Run, allowed: Sequence[Path] = ()) -> MediaFolders:
    """Return where the media of a run are looked for. Without its record, only its folder and ``allowed`` ones."""
    (record, state), folder = _record_of(run), run.source.parent
    if state or not run.document:
        return record_places(record, allowed)
    return MediaFolders((folder,), (folder, *allowed))


def record_places(folder: Path, allowed: Sequence[Path]) -> MediaFolders:
    """Return where the media of a run with a record may be: anywhere, if the record belongs to the present user."""
    output = folder.parent.parent
    try:
        is_ours = folder.stat().st_uid == os.getuid()
    except OSError:
        is_ours = False
    return MediaFolders((output, folder), None if is_ours else (output, *allowed))


def _of_rows(rows: RunRows, folder: Path, allowed: Sequence[Path]) -> ReportRun:
    return ReportRun(rows, rows.results or {}, {}, MediaFolders((folder,), (folder, *allowed)), rows.notes)
