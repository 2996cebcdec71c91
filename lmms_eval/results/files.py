"""Names of a run's files, and how to find runs in a folder."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.config import argument_text
from lmms_eval.errors import ConfigError, DataError, JournalError
from lmms_eval.storage.lines import read_sealed
from lmms_eval.storage.run_folder import has_live_owner
from lmms_eval.utils import model_name_from_args, sanitize_model_name
from lmms_eval.utils.names import file_part, task_of_part
from lmms_eval.utils.redaction import redact

STAMP_FORMAT = "%Y%m%d_%H%M%S"
_STAMP = re.compile(r"\d{8}_\d{6}", re.ASCII)
RUNS = ".runs"
"""Folder next to the results. It has a folder of journals for each run and a file for each reserved date stamp."""
_UNSAFE_ENDS = re.compile(r"^[.\s-]|[.\s]$")
"""Ends of a name that hide a folder, look like an option, or are lost on some file systems."""
_LONGEST = 60
"""Characters of a folder name in front of its digest."""


class ResultFiles(Struct, frozen=True):
    """Paths of one run's files: ``OUT/MODEL/STAMP_results.json`` and ``OUT/MODEL/STAMP_samples_TASK.jsonl``."""

    folder: Path
    stamp: str

    @property
    def results(self) -> Path:
        return self.folder / f"{self.stamp}_results.json"

    @property
    def benchmark(self) -> Path:
        """Prefix of the files that benchmarks' own reports write."""
        return self.results.with_name(self.results.name.removesuffix("_results.json"))

    def samples(self, task: str) -> Path:
        return self.folder / f"{self.stamp}_samples_{file_part(task)}.jsonl"

    @property
    def report(self) -> Path:
        """Folder of the run's report (``--report``)."""
        return self.folder / f"{self.stamp}_report"

    @property
    def reservation(self) -> Path:
        """File that reserves the date stamp until the results exist."""
        return self.folder / RUNS / f"{self.stamp}.reserved"

    def free_stamp(self) -> None:
        """Remove the reservation if the results exist. A leftover reservation does no harm."""
        if self.results.exists():
            with contextlib.suppress(OSError):
                self.reservation.unlink(missing_ok=True)


def is_stamp(text: str) -> bool:
    """Return whether a text is the date stamp of a run."""
    return _STAMP.fullmatch(text) is not None


def model_folder(output_path: Path, model_args: str) -> Path:
    """Return ``OUT/MODEL``, or ``OUT`` itself if ``model_args`` name no model."""
    name = sanitize_model_name(model_name_from_args(model_args))
    return output_path / name if name else output_path


def run_folder(output_path: Path, model: str, model_args: str, keys: Collection[str] = ()) -> Path:
    """Return the folder of a run's files: ``OUT/MODEL``, or a folder for the arguments of a model without a name.

    Such a run goes into ``OUT`` itself, as in the family. If ``OUT`` holds a run of another model of this kind, the
    folder is named after the back end and its arguments, as in ``OUT/baseline-strategy=constant,text=B``.

    Args:
        output_path: ``OUT``.
        model: name of the back end.
        model_args: its arguments.
        keys: the keys that the run may have; a run that is in ``OUT`` already stays there.
    """
    folder = model_folder(output_path, model_args)
    if folder != output_path or any((output_path / RUNS / key).is_dir() for key in keys):
        return folder
    for state in (output_path / RUNS).glob(f"*/{STATE}"):
        given = read_state(state.parent).get("arguments")
        if isinstance(given, Mapping) and _named(given.get("model"), given.get("model_args")) != _named(
            model, model_args
        ):
            return output_path / _named(model, model_args)
    return output_path


def _named(model: object, model_args: object) -> str:
    """Return a folder name of a back end and its arguments; a long one ends with a digest of the whole."""
    arguments = argument_text(model_args) if isinstance(model_args, str | Mapping) else ""
    name = sanitize_model_name(redact("-".join(part for part in (str(model), arguments) if part)), full_path=True)
    name = _UNSAFE_ENDS.sub("_", "".join(letter if letter.isprintable() else "_" for letter in name))
    if len(name) <= _LONGEST:
        return name
    return f"{name[:_LONGEST]}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"


def start_stamp(timezone: str | None, now: datetime | None = None) -> datetime:
    """Return the start time in a zone, or in the machine's own. Raises ``ConfigError`` for an unknown zone."""
    try:
        zone = None if timezone is None else ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            f"--timezone {timezone!r}: no such time zone; give a name such as UTC or Europe/Paris"
        ) from error
    return (now or datetime.now(tz=UTC)).astimezone(zone)


def reserve(folder: Path, start: datetime) -> ResultFiles:
    """Reserve the first free date stamp from ``start`` on by a file below ``.runs``. Raises ``JournalError``."""
    moment = start
    try:
        (folder / RUNS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JournalError(f"cannot make the folder {folder}: {error.strerror or error}") from error
    while True:
        files = ResultFiles(folder, moment.strftime(STAMP_FORMAT))
        try:
            os.close(os.open(files.reservation, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
            if next(folder.glob(f"{files.stamp}_*"), None) is None:
                return files
            files.reservation.unlink()
        except FileExistsError:
            pass
        except OSError as error:
            raise JournalError(f"cannot write into {folder / RUNS}: {error.strerror or error}") from error
        moment += timedelta(seconds=1)


STATE = "run.json"
SHOWN = 12
"""Number of runs that an error message lists."""


class Naming(Struct, frozen=True):
    """Name patterns of a run's files, with placeholders ``DATE`` and ``TASK``."""

    results: str
    samples: str

    def date(self, name: str) -> str | None:
        """Return the date stamp in the name of a results file; ``None`` if the name does not fit.

        A date begins with a digit, since benchmarks also write files such as ``task_results.json``.
        """
        before, _, after = self.results.partition("DATE")
        is_one = name.startswith(before) and name.endswith(after) and len(name) > len(before) + len(after)
        date = name[len(before) : len(name) - len(after)] if is_one else ""
        return date if date[:1].isdigit() else None

    def task(self, name: str) -> tuple[str, str] | None:
        """Return the date stamp and the task in the name of a samples file; ``None`` if the name does not fit."""
        if not name.endswith(".jsonl"):
            return None
        stem = name.removesuffix(".jsonl")
        if self.samples.startswith("DATE"):
            date, mark, part = stem.partition("_samples_")
            task = task_of_part(part)
        else:
            task, mark, date = stem.removeprefix("samples_").rpartition("_")
            mark = mark if stem.startswith("samples_") else ""
        return (date, task) if mark and date and task else None


NAMINGS = (
    Naming("DATE_results.json", "DATE_samples_TASK.jsonl"),  # ours and lmms-eval's
    Naming("results_DATE.json", "samples_TASK_DATE.jsonl"),  # lm-eval's
)


def results_date(name: str) -> str | None:
    """Return the date stamp in the name of a results file, by any naming."""
    return next((date for naming in NAMINGS if (date := naming.date(name)) is not None), None)


def samples_beside(results: Path, task: str) -> Path | None:
    """Return the samples file of a task next to a results file; ``None`` if it does not exist.

    Other harnesses write the task's name into that of the file as it is.
    """
    parts = [file_part(task), *([task] if "/" not in task else [])]
    found = [(naming, date) for naming in NAMINGS if (date := naming.date(results.name)) is not None]
    for naming, date in found[:1]:
        names = (naming.samples.replace("DATE", date).replace("TASK", part) for part in parts)
        return next((path for name in names if (path := results.with_name(name)).is_file()), None)
    return None


def read_state(folder: Path) -> Mapping[str, Any]:
    """Read ``run.json``; empty if it is missing or damaged. The journals remain readable without it."""
    return read_sealed(folder / STATE) or {}


def state_of(state: Mapping[str, Any], is_alive: bool) -> str:
    """Return the state of a run by ``run.json``: ``complete``, ``withheld``, ``interrupted``, ``failed``, ...

    A run whose process is dead counts as interrupted, whatever it last wrote. If nothing is known, it is ``unknown``.
    """
    stated = str(state.get("state", "unknown"))
    return "interrupted" if stated == "running" and not is_alive else stated


def ended_results(record: Path) -> Path | None:
    """Return the results file of a record whose run has ended; ``None`` if the run has not, or the file is gone."""
    state = read_state(record)
    if state.get("state") in (None, "running") or record.parent.name != RUNS:
        return None
    results = ResultFiles(record.parent.parent, str(state.get("stamp"))).results
    return results if results.is_file() else None


def run_mark(document: Mapping[str, Any]) -> str:
    """Return a key of a run within its folder: its hash, else the model's arguments and the tasks."""
    from lmms_eval.results.facts import model_of

    if "run_key" in document:
        return str(document["run_key"])
    config, tasks = document.get("config"), document.get("configs")
    arguments = config.get("model_args") if isinstance(config, Mapping) else None
    return repr((model_of(document), arguments, sorted(tasks) if isinstance(tasks, Mapping) else []))


class FoundRun(Struct, frozen=True):
    """A results file, or the folder of a record, with a short description."""

    path: Path
    about: str
    note: str = ""
    """Which other runs of the folder were left out."""


def run_path(named: str | Path) -> Path:
    """Return the path of a named run: a file or folder, or ``FOLDER/STAMP`` for the results of that date.

    Raises ``DataError`` if the path does not exist.
    """
    path = Path(named).expanduser()
    if path.exists():
        return path
    names = [naming.results.replace("DATE", path.name) for naming in NAMINGS]
    found = next((place for name in names if (place := path.with_name(name)).is_file()), None)
    if found is None:
        raise DataError(f"{path}: no such file or folder")
    return found


def find_run(folder: Path) -> FoundRun | None:
    """Find the run in a folder: its results file, or the record of a run without results.

    A finished run takes precedence over unfinished runs in the same folder; its note names them. Raises ``DataError``
    if the folder holds several runs.
    """
    runs = find_runs(folder)
    finished = [run for run in runs if run.path.is_file()]
    if len(runs) > 1 and len(finished) != 1:
        raise DataError(f"{folder} holds {len(runs)} runs: name one of them: {_listed(runs)}")
    if len(runs) > 1:
        left = [run for run in runs if run.path.is_dir()]
        note = f"{folder} holds unfinished runs too, which are left out; name one to read it: {_listed(left)}"
        return replace(finished[0], note=note)
    return runs[0] if runs else None


def _listed(runs: Sequence[FoundRun]) -> str:
    listed = "; ".join(f"{run.path} ({run.about:.120})" for run in runs[:SHOWN])
    return listed + (f"; and {len(runs) - SHOWN} more" if len(runs) > SHOWN else "")


def find_runs(folder: Path) -> list[FoundRun]:
    """Find the runs in a folder and one folder below: the newest results file of each run, and records without results.

    If the folder has results, a record counts only if the run started after all of them or its process is alive. Older
    records were abandoned. Raises ``DataError`` if a results file cannot be read.
    """
    if (folder / STATE).is_file():
        return [FoundRun(folder, "")]
    inner = [folder, *sorted(item for item in folder.iterdir() if item.is_dir() and item.name != RUNS)]
    return [run for place in inner for run in _finished(place)] + [run for place in inner for run in _unfinished(place)]


def _finished(place: Path) -> list[FoundRun]:
    from lmms_eval.results.facts import model_of, read_document

    found: dict[str, FoundRun] = {}
    for path in sorted(path for path in place.glob("*.json") if results_date(path.name) is not None):
        document = read_document(path)
        tasks = document.get("configs") if isinstance(document, dict) else None
        if isinstance(tasks, dict) and tasks:
            config = document.get("config")
            arguments = config.get("model_args") if isinstance(config, Mapping) else None
            about = ", ".join(filter(None, (model_of(document), str(arguments or "")[:40], *tasks)))
            found[run_mark(document)] = FoundRun(path, about)  # the newest file comes last
    return list(found.values())


def _unfinished(place: Path) -> Iterator[FoundRun]:
    dates = {results_date(path.name) or "" for path in place.glob("*.json")} - {""}
    for file in sorted((place / RUNS).glob(f"*/{STATE}")):
        state = read_state(file.parent)
        if is_unfinished(file.parent, state, dates):
            begun = state.get("stamp") or "at an unknown time"
            yield FoundRun(file.parent, f"state {state.get('state', 'unknown')}, begun {begun}")


def is_unfinished(record: Path, state: Mapping[str, Any], dates: Collection[str]) -> bool:
    """Return whether a record is a run without results that was not abandoned, given the dates of the results."""
    stamp = str(state.get("stamp") or "")
    return not dates or (stamp not in dates and (stamp > max(dates) or has_live_owner(record)))
