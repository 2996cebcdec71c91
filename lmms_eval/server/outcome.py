"""The outcome of a job: the files that its run has written, and, of a failed one, why."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from lmms_eval.errors import DataError
from lmms_eval.results.naming import RUNS, is_stamp
from lmms_eval.results.run_reader.document import part_of
from lmms_eval.results.run_reader.finding import results_date
from lmms_eval.server.folder import Exit, JobFolder
from lmms_eval.server.job import Ending, Job
from lmms_eval.server.job_log import JobLog
from lmms_eval.storage.json_files import read_json
from lmms_eval.utils.redaction import redact_text

LOG_LINES = 50
"""Last lines of the log that the reason of a failure ends with."""
MOST_WITHHELD = 5
"""Tasks that the reason of a failure names."""
_INTERRUPTS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def ending_of(job: Job, folder: JobFolder, ended: Exit) -> Ending:
    """Tell how a job has ended whose process has."""
    result = result_of(job, folder)
    if ended.code == 0 and result:
        return Ending("completed", result)
    if job.is_cancelled and ended.code != 0:
        return Ending("cancelled", result or None)
    return Ending("failed", result or None, _reason(folder, ended, result))


def lost(folder: JobFolder) -> Ending:
    """End a job whose processes were killed again and again."""
    return Ending("failed", None, "its processes were killed from outside, each time anew\n" + _last_lines(folder))


def _reason(folder: JobFolder, ended: Exit, result: Mapping[str, Any]) -> str:
    if ended.problem:
        return ended.problem
    if ended.code < 0:
        told = f"the run was killed by signal {-ended.code} ({_signal_name(-ended.code)})"
    elif ended.code == 0:
        told = "the run has written no results"
    elif ended.code - 128 in _INTERRUPTS:
        told = f"the run was interrupted by {_signal_name(ended.code - 128)}, which this server has not sent"
    elif withheld := _withheld(result):
        told = f"scores are withheld (exit code {ended.code}), see the results: {withheld}"
    else:
        told = f"the run ended with exit code {ended.code}"
    return f"{told}; the end of its log:\n{_last_lines(folder)}"


def _withheld(result: Mapping[str, Any]) -> str:
    """Tell which scores the results of a run withhold, and why; empty if they withhold none."""
    found = [told for files in result.values() for told in _withheld_in(Path(files["results"]))]
    more = f", and {len(found) - MOST_WITHHELD} more" if len(found) > MOST_WITHHELD else ""
    return ", ".join(found[:MOST_WITHHELD]) + more


def _withheld_in(file: Path) -> list[str]:
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


def output_of(job: Job, folder: JobFolder) -> Path:
    """Return the output folder of a job's run."""
    stated = job.request.get("output_dir")
    return folder.work / Path(stated).expanduser() if stated else folder.output


def result_of(job: Job, folder: JobFolder) -> dict[str, Any]:
    """List the files of a job's run by the folder of its model; of several results of one model the newest."""
    found: dict[str, Any] = {}
    output = output_of(job, folder)
    for path in results_files(job, folder):
        stamp = results_date(path.name)
        name = path.parent.name if path.parent != output else str(job.request.get("model"))
        samples = sorted(path.parent.glob(f"{stamp}_samples_*.jsonl"))
        found[name] = {"results": str(path), "samples": [str(one) for one in samples]}
    return found


def named_files(job: Job) -> dict[str, Any] | None:
    """Name the files of a job's result as its archive does, for who cannot read the folder."""
    if job.result is None:
        return None
    output = str(output_of(job, JobFolder(Path(job.folder))))
    return {
        model: {
            "results": _below(files["results"], output),
            "samples": [_below(one, output) for one in files["samples"]],
        }
        for model, files in job.result.items()
    }


def _below(path: str, folder: str) -> str:
    return path.removeprefix(f"{folder}/") if path.startswith(f"{folder}/") else Path(path).name


def results_files(job: Job, folder: JobFolder) -> list[Path]:
    """List the results files that a job's run has written, oldest first.

    Only ``STAMP_results.json`` counts: benchmarks write further files (``task_results.json``) whose names end alike.
    """
    output = output_of(job, folder)
    found = [*output.glob("*_results.json"), *output.glob("*/*_results.json")]
    files = [path for path in found if is_stamp(results_date(path.name) or "")]
    is_shared = bool(job.request.get("output_dir"))
    return sorted(path for path in files if not is_shared or _is_of(path, job, folder))


def _is_of(path: Path, job: Job, folder: JobFolder) -> bool:
    """Tell whether a file in a folder that other runs write into too is this job's: its record names the options."""
    try:
        if job.started_at is None or path.stat().st_mtime < datetime.fromisoformat(job.started_at).timestamp() - 60:
            return False
        document = read_json(path)
    except (OSError, DataError):
        return False
    stated: Mapping[str, Any] = part_of(document, "config", "resolved_cli_args") if isinstance(document, dict) else {}
    return stated.get("config") == str(folder.config_file)


def records(job: Job, folder: JobFolder) -> Iterator[Path]:
    """Go through the folders of journals (``.runs/KEY``) that a job's run writes."""
    output = output_of(job, folder)
    for place in (output, *_folders(output)):
        for state in sorted((place / RUNS).glob("*/run.json")):
            if not job.request.get("output_dir") or _is_record_of(state.parent, folder):
                yield state.parent


def _folders(output: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return sorted(path for path in output.iterdir() if path.is_dir() and path.name != RUNS)
    return []


def _is_record_of(record: Path, folder: JobFolder) -> bool:
    from lmms_eval.results.run_reader.finding import read_state

    return part_of(read_state(record), "arguments").get("config") == str(folder.config_file)
