"""Folders, file names and date stamps of results."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lmms_eval.errors import ConfigError, JournalError
from lmms_eval.utils import model_name_from_args, sanitize_model_name

STAMP_FORMAT = "%Y%m%d_%H%M%S"
_STAMP = re.compile(r"\d{8}_\d{6}", re.ASCII)
RUNS = ".runs"
"""Folder beside the results, with a folder of journals for each run and a file for each date stamp in use."""


@dataclass(frozen=True, slots=True)
class ResultFiles:
    """Files of one run: ``OUT/MODEL/STAMP_results.json`` and ``OUT/MODEL/STAMP_samples_TASK.jsonl``."""

    folder: Path
    stamp: str

    @property
    def results(self) -> Path:
        return self.folder / f"{self.stamp}_results.json"

    @property
    def benchmark(self) -> Path:
        """Beginning of the names of what benchmarks' own reports write."""
        return self.results.with_name(self.results.name.removesuffix("_results.json"))

    def samples(self, task: str) -> Path:
        return self.folder / f"{self.stamp}_samples_{task}.jsonl"

    @property
    def report(self) -> Path:
        """Folder of the run's pages (``--report``)."""
        return self.folder / f"{self.stamp}_report"

    @property
    def reservation(self) -> Path:
        """Keeps the date stamp from other runs until the results are there."""
        return self.folder / RUNS / f"{self.stamp}.reserved"

    def free_stamp(self) -> None:
        """The results file keeps the date stamp from now on; a reservation that stays does no harm."""
        if self.results.exists():
            with contextlib.suppress(OSError):
                self.reservation.unlink(missing_ok=True)


def is_stamp(text: str) -> bool:
    """Return whether a text is the date stamp of a run."""
    return _STAMP.fullmatch(text) is not None


def model_folder(output_path: Path, model_args: str) -> Path:
    """``OUT/MODEL``, or ``OUT`` itself where ``model_args`` name no model."""
    name = sanitize_model_name(model_name_from_args(model_args))
    return output_path / name if name else output_path


def start_stamp(timezone: str | None, now: datetime | None = None) -> datetime:
    """The start time in the wanted zone, or the machine's own. Raises ``ConfigError`` for an unknown zone."""
    try:
        zone = None if timezone is None else ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            f"--timezone {timezone!r}: no such time zone; give a name such as UTC or Europe/Paris"
        ) from error
    return (now or datetime.now(tz=UTC)).astimezone(zone)


def reserve(folder: Path, start: datetime) -> ResultFiles:
    """Take the first free date stamp from ``start`` on, by creating a file for it below ``.runs``.

    Raises:
        JournalError: the folder cannot be written.
    """
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
