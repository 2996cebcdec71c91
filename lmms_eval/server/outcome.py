"""The outcome of a job: how it ended, and the results, samples and files that its run has written."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import stat
import zipfile
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

from lmms_eval.errors import DataError, RequestError
from lmms_eval.results.facts import part_of, selected
from lmms_eval.results.files import RUNS, is_stamp, read_state, results_date
from lmms_eval.results.run import Choice, Run, load
from lmms_eval.results.sample import Sample
from lmms_eval.server.folder import Exit, JobFolder
from lmms_eval.server.job_log import JobLog
from lmms_eval.server.store import Job, JobEnding
from lmms_eval.storage.atomic import read_json
from lmms_eval.utils.redaction import redact_text
from lmms_eval.utils.where import parse_where
from lmms_eval.viewer.numbers import headlines, stated_rows

LOG_LINES = 50
"""Last lines of the log that are appended to the reason of a failure."""
MOST_WITHHELD = 5
"""Tasks that the reason of a failure names."""
MOST_SAMPLES = 500
_KEPT_RUNS = 8
_PIECE, _LARGE = 1 << 20, 1 << 30
_ERROR, _EXIT, _LOG_FOLLOWS = "error: ", "the run ended with exit code", "; the end of its log:"
_LEFT_OUT = frozenset({"owner.json"})
_INTERRUPTS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def ending_of(job: Job, ended: Exit) -> JobEnding:
    """Decide how a job has ended, from the end of its process and the results that it wrote."""
    result = result_of(job)
    if ended.code == 0 and result:
        return JobEnding("completed", result)
    if job.is_cancelled and ended.code != 0:
        return JobEnding("cancelled", result or None)
    return JobEnding("failed", result or None, _reason(job.files, ended, result))


def lost(job: Job) -> JobEnding:
    """Return the end of a job whose processes were killed too often."""
    return JobEnding("failed", None, "its processes were killed from outside repeatedly\n" + _last_lines(job.files))


def _reason(folder: JobFolder, ended: Exit, result: Mapping[str, Any]) -> str:
    if ended.problem:
        return ended.problem
    if ended.code < 0:
        text = f"the run was killed by signal {-ended.code} ({_signal_name(-ended.code)})"
    elif ended.code == 0:
        text = "the run has written no results"
    elif ended.code - 128 in _INTERRUPTS:
        text = f"the run was interrupted by {_signal_name(ended.code - 128)}, which this server has not sent"
    elif withheld := [text for files in result.values() for text in _withheld_in(Path(files["results"]))]:
        more = f", and {len(withheld) - MOST_WITHHELD} more" if len(withheld) > MOST_WITHHELD else ""
        named = ", ".join(withheld[:MOST_WITHHELD]) + more
        text = f"{'score' if len(withheld) == 1 else 'scores'} withheld (exit code {ended.code}): {named}"
    elif error := _last_error(lines := _last_lines(folder)):
        return f"{error} (exit code {ended.code}){_LOG_FOLLOWS}\n{lines}"
    else:
        text = f"{_EXIT} {ended.code}"
    return f"{text}{_LOG_FOLLOWS}\n{_last_lines(folder)}"


def _last_error(lines: str) -> str:
    """Return the last message of the command in a log; empty if it printed none."""
    errors = (line.removeprefix(_ERROR) for line in reversed(lines.splitlines()) if line.startswith(_ERROR))
    return next(errors, "").strip()


def short_reason(error: str) -> str:
    """Return the first line of a job's error, without the lines of the log; of an exit code alone, the last message."""
    first, _, lines = error.partition("\n")
    return (first.startswith(_EXIT) and _last_error(lines)) or first.removesuffix(_LOG_FOLLOWS)


def _withheld_in(file: Path) -> list[str]:
    """Name the scores that a results file withholds, with the reasons."""
    try:
        document = read_json(file)
    except DataError:
        return []
    if not isinstance(document, dict) or document.get("state") != "withheld":
        return []
    found = []
    for task in (outcomes := part_of(document, "outcomes")):
        parts = part_of(part_of(outcomes, task), "partial")
        reasons = dict.fromkeys(str(part_of(parts, name).get("reason", "")) for name in parts)
        if reasons or part_of(outcomes, task).get("withheld"):
            found.append(f"{task}: {'; '.join(reasons) or 'withheld'}")
    return found


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def _last_lines(folder: JobFolder) -> str:
    try:
        return redact_text("\n".join(JobLog(folder.log).last_lines(LOG_LINES)))
    except OSError as error:
        return f"[the log cannot be read: {error.strerror or error}]"


def output_of(job: Job) -> Path:
    """Return the output folder of a job's run."""
    stated = job.request.get("output_dir")
    return job.files.work / Path(stated).expanduser() if stated else job.files.output


def result_of(job: Job) -> dict[str, Any]:
    """List the files of a job's run by the model's folder. If a model has several results, the newest one counts."""
    found: dict[str, Any] = {}
    output = output_of(job)
    for path in results_files(job):
        stamp = results_date(path.name)
        name = path.parent.name if path.parent != output else str(job.request.get("model"))
        samples = sorted(path.parent.glob(f"{stamp}_samples_*.jsonl"))
        found[name] = {"results": str(path), "samples": [str(one) for one in samples]}
    return found


def named_files(job: Job) -> dict[str, Any] | None:
    """Return the job's result with file names of its archive, for clients that cannot read the folder."""
    if job.result is None:
        return None
    folder = f"{output_of(job)}/"

    def named(path: str) -> str:
        return path.removeprefix(folder) if path.startswith(folder) else Path(path).name

    return {
        model: {"results": named(files["results"]), "samples": [named(one) for one in files["samples"]]}
        for model, files in job.result.items()
    }


def results_files(job: Job) -> list[Path]:
    """List the results files that a job's run has written, oldest first.

    Only ``STAMP_results.json`` counts: benchmarks write further files (``task_results.json``) whose names end alike.
    """
    output = output_of(job)
    found = [*output.glob("*_results.json"), *output.glob("*/*_results.json")]
    files = [path for path in found if is_stamp(results_date(path.name) or "")]
    if not job.request.get("output_dir"):
        return sorted(files)
    own = []  # in a shared output folder, a file of this job names the job's configuration file
    begin = math.inf if job.started_at is None else datetime.fromisoformat(job.started_at).timestamp() - 60
    for path in sorted(files):
        with contextlib.suppress(OSError, DataError):
            document = read_json(path) if path.stat().st_mtime >= begin else None
            stated = part_of(document, "config", "resolved_cli_args") if isinstance(document, dict) else {}
            if stated.get("config") == str(job.files.config_file):
                own.append(path)
    return own


def records(job: Job) -> Iterator[Path]:
    """Yield the journal folders (``.runs/KEY``) of a job's run."""
    output = output_of(job)
    folders: list[Path] = []
    with contextlib.suppress(OSError):
        folders = sorted(path for path in output.iterdir() if path.is_dir() and path.name != RUNS)
    for place in (output, *folders):
        for state in sorted((place / RUNS).glob("*/run.json")):
            stated = part_of(read_state(state.parent), "arguments").get("config")
            if not job.request.get("output_dir") or stated == str(job.files.config_file):
                yield state.parent


def scores_of(job: Job) -> dict[str, Any]:
    """Return the scores of a job by model. Raises ``DataError`` if it has none or a file cannot be read."""
    files = result_of(job)
    if not files:
        raise DataError(f"Job {job.job_id} has no results: it is {job.state}")
    scores: dict[str, Any] = {}
    for name, found in files.items():
        run = load(Path(found["results"]))
        scores[name] = {
            "date": run.date,
            "state": run.state,
            "scores": rows_of(run.document),
            "results": part_of(run.document, "results"),
            "groups": run.groups,
            "n_samples": part_of(run.document, "n-samples"),
            "outcomes": part_of(run.document, "outcomes"),
        }
    return scores


def rows_of(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the scores of a results document."""
    return [row for name in part_of(document, "results") for row in stated_rows(document, name)]


def headline_rows(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the main numbers of a run: those of the benchmarks, else the first of each task or group that was
    asked for. Groups without a number are represented by their tasks.
    """
    if found := headlines(document):
        return found
    rows: list[dict[str, Any]] = []
    for name, leaves in selected(document).items():
        own = _first_row(document, name)
        rows += [own] if own is not None else [row for leaf in leaves if (row := _first_row(document, leaf))]
    return rows


def _first_row(document: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    return next(stated_rows(document, name), None)


def runs_of(job: Job) -> list[Run]:
    """Read the runs of a job, finished or not. Raises ``DataError``."""
    files = [Path(found["results"]) for found in result_of(job).values()]
    if files:
        return [_finished(path, (found := path.stat()).st_mtime_ns, found.st_size) for path in files]
    return [load(record) for record in records(job)]


@lru_cache(_KEPT_RUNS)
def _finished(path: Path, _changed_ns: int, _size: int) -> Run:
    """Read a finished run. The last ones are kept, so that the index of their samples is not built for every page."""
    return load(path)


def page_of(runs: list[Run], task: str | None, offset: int, limit: int, where: str | None) -> dict[str, Any]:
    """Read a page of samples of one task.

    Raises:
        RequestError: the task must be named, or the bounds are wrong.
        UsageError: the task does not exist, or the expression is wrong.
    """
    if not (offset >= 0 and 1 <= limit <= MOST_SAMPLES):
        raise RequestError(f"offset: 0 or more; limit: from 1 to {MOST_SAMPLES}")
    if not runs:
        raise DataError("nothing has been answered yet")
    names = [name for run in runs for name in run.tasks]
    if task is None and len(names) != 1:
        raise RequestError(f"task: name one of {', '.join(names)}")
    name = task or names[0]
    run = next((run for run in runs if name in run.tasks), runs[0])
    found = run.task(name)
    if where is None:
        total = len(found)
        chosen = [found.at(number) for number in range(offset, min(offset + limit, total))]
    else:
        expression = parse_where(where)
        run.check(expression)
        samples: Iterator[Sample] = found.samples(Choice(where=expression))
        passed = sum(1 for _ in islice(samples, offset))
        chosen = list(islice(samples, limit))
        total = passed + len(chosen) + sum(1 for _ in samples)
    return {"task": name, "offset": offset, "limit": limit, "total": total, "samples": [one.record for one in chosen]}


def files_of(job: Job) -> Mapping[str, Path]:
    """List the regular files that a job's run has written, by their paths relative to the output folder.

    In an output folder that other runs share, only the files with the run's date stamps and its journals count. Links
    are left out, since they may lead anywhere.
    """
    output = output_of(job)
    places = [output]
    if job.request.get("output_dir"):
        places = [*records(job)]
        stamps = {(path.parent, results_date(path.name) or "") for path in results_files(job)}
        stamps |= {(record.parent.parent, str(read_state(record).get("stamp") or "")) for record in places}
        places += [path for folder, stamp in stamps if stamp for path in folder.glob(f"{stamp}_*")]
    found = {path for place in places for path in _files_below(place)}
    return {str(path.relative_to(output)): path for path in sorted(found)}


def _files_below(place: Path) -> list[Path]:
    if _is_file(place):
        return [place]
    if place.is_symlink():
        return []
    return [
        Path(parent) / name
        for parent, _, names in os.walk(place)
        for name in names
        if name not in _LEFT_OUT and not name.endswith((".tmp", ".reserved")) and _is_file(Path(parent) / name)
    ]


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


class _Sink:
    """File-like target of a zip archive whose data is taken out piece by piece."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        pass

    def take(self) -> bytes:
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken


def zip_stream(files: Mapping[str, Path]) -> Iterator[bytes]:
    """Yield an archive piece by piece, with one piece in memory. A file that disappears meanwhile is left out."""
    sink = _Sink()
    with zipfile.ZipFile(cast(IO[bytes], sink), "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, path in files.items():
            with contextlib.suppress(FileNotFoundError), open(path, "rb") as source:
                left = os.fstat(source.fileno()).st_size  # a running job may append to the file meanwhile
                entry = zipfile.ZipInfo.from_file(path, name, strict_timestamps=False)
                entry.compress_type = zipfile.ZIP_DEFLATED
                with archive.open(entry, "w", force_zip64=left > _LARGE) as target:
                    while left > 0 and (data := source.read(min(_PIECE, left))):
                        left -= len(data)
                        target.write(data)
                        yield sink.take()
    yield sink.take()
