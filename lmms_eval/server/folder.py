"""The folder of a job: what its keeper is told, what it leaves behind, and the output of the run.

Everything that decides about a job's end stands here as a file, so that a server which was killed finds it again.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval.storage.atomic import write_atomically

_RESERVED = 4096
"""Bytes of the note about the end, written beforehand: a disk that has become full takes it all the same."""
_ATTEMPTS, _BETWEEN_S = 10, 0.05


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of a job's process."""

    code: int
    """Negative: the number of the signal that killed it."""
    ended_at: str
    problem: str = ""
    """The reason for which it was never started."""


@dataclass(frozen=True, slots=True)
class JobFolder:
    """The places in a job's folder."""

    path: Path

    @property
    def job_file(self) -> Path:
        """The job itself, should the list of jobs be lost."""
        return self.path / "job.json"

    @property
    def config_file(self) -> Path:
        """The options of the run."""
        return self.path / "config.yaml"

    @property
    def output(self) -> Path:
        """Output folder of the run, where the request names no other."""
        return self.path / "output"

    @property
    def work(self) -> Path:
        """Working folder of the run: a relative path leads nowhere else."""
        return self.path / "work"

    @property
    def log(self) -> Path:
        """Folder with the parts of the log."""
        return self.path / "log"

    @property
    def start_file(self) -> Path:
        """The command that the keeper runs."""
        return self.path / "start.json"

    @property
    def child_file(self) -> Path:
        """The process that the keeper has started."""
        return self.path / "child.json"

    @property
    def cancel_file(self) -> Path:
        """Tells the keeper to end the run for good."""
        return self.path / "cancel"

    @property
    def suspend_file(self) -> Path:
        """Tells the keeper to end the run, which is to go on later."""
        return self.path / "suspend"

    @property
    def exit_file(self) -> Path:
        return self.path / "exit.json"

    @property
    def _reserve(self) -> Path:
        return self.path / ".exit.reserved"

    @property
    def _lock_file(self) -> Path:
        return self.path / "keeper.lock"

    def write(self, file: Path, content: Mapping[str, Any]) -> None:
        """Write a file of this folder as a whole. Raises ``JournalError``."""
        write_atomically(file, json.dumps(content, ensure_ascii=False, indent=1).encode("utf-8", "replace"))

    def read(self, file: Path) -> dict[str, Any]:
        """Read a file of this folder; empty where it is missing or damaged."""
        try:
            found = json.loads(file.read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def reserve_exit(self) -> None:
        """Take the room for the note about the end. Raises ``OSError`` where there is none."""
        with open(self._reserve, "wb") as file:
            file.write(b" " * _RESERVED)
            file.flush()
            os.fsync(file.fileno())

    def write_exit(self, ended: Exit) -> None:
        """Note the end durably, in the room that was taken. Raises ``OSError``."""
        note = {"code": ended.code, "ended_at": ended.ended_at, "problem": ended.problem[: _RESERVED // 4]}
        with open(self._reserve, "r+b") as file:
            file.write(json.dumps(note).encode().ljust(_RESERVED))
            file.flush()
            os.fsync(file.fileno())
        os.replace(self._reserve, self.exit_file)

    def exit(self) -> Exit | None:
        """Read how the run has ended; ``None`` while it has not."""
        found = self.read(self.exit_file)
        if not isinstance(found.get("code"), int):
            return None
        return Exit(found["code"], str(found.get("ended_at", "")), str(found.get("problem", "")))

    def hold(self) -> int | None:
        """Become this folder's keeper until the process ends; ``None`` if another process is. Raises ``OSError``."""
        handle = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        for _ in range(_ATTEMPTS):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # another keeper, or the server that looks whether there is one
                time.sleep(_BETWEEN_S)
            else:
                return handle
        os.close(handle)
        return None

    @property
    def has_keeper(self) -> bool:
        """A live process is this folder's keeper. The system frees the lock when it dies, whatever it dies of."""
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
