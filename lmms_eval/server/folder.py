"""The folder of a job: the keeper's orders, the record of the job's end, and the output of the run.

Everything that decides how a job ends is a file in this folder, so a server that is restarted after a kill finds it.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from lmms_eval.storage.atomic import write_atomically

_RESERVED = 4096
"""Bytes that are reserved for the record of the end, so that it can be written even if the disk is full by then."""
_ATTEMPTS, _BETWEEN_S = 10, 0.05


class Exit(Struct, frozen=True):
    """The end of a job's process."""

    code: int
    """Exit code; a negative value is the number of the signal that killed the process."""
    ended_at: str
    problem: str = ""
    """Why the process was never started."""


class _Below:
    """A path in a job's folder."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: JobFolder, _: type[JobFolder] | None = None) -> Path:
        return folder.path / self._name


class JobFolder(Struct, frozen=True):
    """Paths in a job's folder, and the files that the server and the keeper exchange."""

    path: Path
    job_file = _Below("job.json")
    """Copy of the job, in case the list of jobs is lost."""
    config_file = _Below("config.yaml")
    """The options of the run."""
    output = _Below("output")
    """Output folder of the run, unless the request names another."""
    work = _Below("work")
    """Working folder of the run: relative paths stay inside it."""
    log = _Below("log")
    """Folder with the parts of the log."""
    start_file = _Below("start.json")
    """The command that the keeper runs."""
    child_file = _Below("child.json")
    """The process that the keeper has started."""
    cancel_file = _Below("cancel")
    """Signal to the keeper to end the run for good."""
    suspend_file = _Below("suspend")
    """Signal to the keeper to interrupt the run, which resumes later."""
    exit_file = _Below("exit.json")
    _reserve = _Below(".exit.reserved")
    _lock_file = _Below("keeper.lock")

    def write(self, file: Path, content: Mapping[str, Any]) -> None:
        """Write a file of this folder as a whole. Raises ``JournalError``."""
        write_atomically(file, json.dumps(content, ensure_ascii=False, indent=1).encode("utf-8", "replace"))

    def read(self, file: Path) -> dict[str, Any]:
        """Read a file of this folder; empty if it is missing or damaged."""
        try:
            found = json.loads(file.read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def reserve_exit(self) -> None:
        """Reserve disk space for the record of the end. Raises ``OSError`` if the disk is full."""
        with open(self._reserve, "wb") as file:
            file.write(b" " * _RESERVED)
            file.flush()
            os.fsync(file.fileno())

    def write_exit(self, ended: Exit) -> None:
        """Record the end durably, in the reserved space. Raises ``OSError``."""
        note = {"code": ended.code, "ended_at": ended.ended_at, "problem": ended.problem[: _RESERVED // 4]}
        with open(self._reserve, "r+b") as file:
            file.write(json.dumps(note).encode().ljust(_RESERVED))
            file.flush()
            os.fsync(file.fileno())
        os.replace(self._reserve, self.exit_file)

    def exit(self) -> Exit | None:
        """Read how the run ended; ``None`` if it has not ended."""
        found = self.read(self.exit_file)
        if not isinstance(found.get("code"), int):
            return None
        return Exit(found["code"], str(found.get("ended_at", "")), str(found.get("problem", "")))

    def hold(self) -> int | None:
        """Become this folder's keeper until this process ends; ``None`` if there is another. Raises ``OSError``."""
        handle = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        for _ in range(_ATTEMPTS):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # held by another keeper, or by the server while it checks for one
                time.sleep(_BETWEEN_S)
            else:
                return handle
        os.close(handle)
        return None

    @property
    def has_keeper(self) -> bool:
        """Whether a live process is this folder's keeper. The system frees the lock however that process dies."""
        try:
            handle = os.open(self._lock_file, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False
