"""The folder that holds a run's journals. Its key identifies it on resume; one live process at a time owns it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import orjson
from msgspec import UNSET, Struct, UnsetType

from lmms_eval.errors import JournalError, RunLockedError, UsageError
from lmms_eval.storage.atomic import write_atomically
from lmms_eval.storage.codec import load_record
from lmms_eval.storage.lines import sealed, unsealed
from lmms_eval.utils.redaction import redact

HUNG = "hung.jsonl"
"""File in the run's folder that lists the documents that ended the process while they were scored."""
HEARTBEAT_S = 20.0
STALE_AFTER_S = 120.0
"""An owner on another host counts as dead if its heartbeat is older than this."""
TORN_AFTER_S = 1.0
"""An unreadable owner file that is newer than this may still be being written; an older one was torn by a kill."""

RunState = Literal["running", "complete", "stopped early", "withheld", "interrupted"]
RecordState = Literal["running", "complete", "stopped early", "withheld", "interrupted", "failed"]
"""State in ``run.json``: an error has ended a ``failed`` run before it wrote results."""
TRACEBACK = "traceback.txt"
"""File in the run's folder with the traceback of the error that has ended the last start."""


class RunFile(Struct, kw_only=True, frozen=True):
    """Content of ``run.json``, without its checksum line. Processes that joined write only the first three keys."""

    key: str
    """Hash over everything that can change an answer; also the folder's name."""
    state: RecordState
    """State of the run; ``running`` also after a kill, ``failed`` after an error that has ended it."""
    date: str
    """First start of the run."""
    stamp: str | UnsetType | None = UNSET
    """Date stamp in the names of the result files."""
    starts: int | UnsetType = UNSET
    """How often the run was started."""
    arguments: dict[str, Any] | UnsetType = UNSET
    """The options, with secrets masked."""
    model: dict[str, Any] | UnsetType = UNSET
    """Back end and identity of the model."""
    launcher: str | UnsetType = UNSET
    """The process that started the run, to distinguish the attempts of an elastic launcher."""
    tasks: dict[str, Any] | UnsetType = UNSET
    """Metrics of each task, needed to read its numbers from the journal."""
    early_stops: dict[str, Any] | UnsetType = UNSET
    """Tasks that ``--until`` ended early."""
    command: str | UnsetType = UNSET
    """Command that asks for the missing answers; empty if none are missing."""
    error: str | UnsetType = UNSET
    """The error that has ended a failed run."""


class Owner(Struct, frozen=True):
    """The process that owns a run's folder."""

    host: str
    pid: int
    started: str
    """Start time of the process as reported by the system, so that a reused process id is not mistaken for the owner.
    """


def this_process() -> Owner:
    return Owner(socket.gethostname(), os.getpid(), start_time(os.getpid()) or "")


def start_time(pid: int) -> str | None:
    """Return the start time of a process: ``""`` if the system does not report it, ``None`` if it is not alive."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = stat.rpartition(")")[2].split()
        return None if fields[0] in "ZX" else fields[19]
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return None
    except OSError:
        return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return ""
    return ""


class DamagedRecord(JournalError):
    """``run.json`` is damaged. The journals in the same folder have their own checksums."""


class RunFolder:
    """``OUT/MODEL/.runs/KEY``: the journals, ``run.json`` (description, date and state), ``owner.json``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stop = threading.Event()
        self._body = b""
        """Content of ``owner.json`` while this process owns the folder."""
        self.was_abandoned = False
        """The previous owner died without releasing the folder."""

    @property
    def owner_file(self) -> Path:
        return self.path / "owner.json"

    def acquire(self) -> None:
        """Become the owner.

        Raises:
            RunLockedError: another live process owns the folder.
            JournalError: the folder cannot be created or written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise JournalError(f"cannot make the run's folder {self.path}: {error.strerror or error}") from error
        body = msgspec.json.encode(this_process())
        for _ in range(20):
            try:
                handle = os.open(self.owner_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            except FileExistsError:
                self._remove_dead_owner()
                continue
            except OSError as error:
                raise self._unwritable(error) from error
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(body)
            except OSError as error:
                self.owner_file.unlink(missing_ok=True)
                raise self._unwritable(error) from error
            self._body = body
            threading.Thread(target=self._beat, name="run-heartbeat", daemon=True).start()
            return
        raise RunLockedError(f"another process keeps taking over {self.path}: wait for it to end")

    def release(self) -> None:
        """Release the folder, unless another process considered this one dead and owns it now."""
        self._stop.set()
        with contextlib.suppress(OSError):
            if self._body and self.owner_file.read_bytes() == self._body:
                self.owner_file.unlink()
        self._body = b""

    @property
    def state_file(self) -> Path:
        return self.path / "run.json"

    def read(self) -> dict[str, Any]:
        """Return the content of ``run.json``; empty without the file. Raises ``DamagedRecord`` if it is damaged."""
        try:
            content = unsealed(self.state_file.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise DamagedRecord(f"{self.state_file} cannot be read: {error.strerror or error}") from error
        if content is None:
            raise DamagedRecord(f"{self.state_file} does not fit its checksum")
        record = load_record(content)
        if record is None:
            raise DamagedRecord(f"{self.state_file} holds no record")
        return record

    def write(self, content: Mapping[str, Any]) -> None:
        """Write ``run.json`` atomically, with secrets masked. Raises ``JournalError``."""
        masked = redact(content, by_name=False)
        write_atomically(self.state_file, sealed(orjson.dumps(masked, option=orjson.OPT_INDENT_2, default=str)))

    def clear(self) -> None:
        """Delete the journals of a completed run. The list of documents that hung is kept: they would hang again.

        Raises ``JournalError`` if a file cannot be removed.
        """
        try:
            for entry in self.path.iterdir():
                if entry.name not in ("owner.json", HUNG):
                    shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        except OSError as error:
            raise JournalError(f"cannot clear {self.path} to begin anew: {error.strerror or error}") from error

    def _unwritable(self, error: OSError) -> JournalError:
        return JournalError(f"cannot write {self.owner_file}: {error.strerror or error}; make room and start again")

    def _beat(self) -> None:
        while not self._stop.wait(HEARTBEAT_S):
            with contextlib.suppress(OSError):
                os.utime(self.owner_file)

    def _remove_dead_owner(self) -> None:
        """Remove the owner file of a dead process. Does nothing if the file is missing or still being written."""
        # The lock is held while the owner is examined: else a second process could remove the new file of the first.
        handle = os.open(self.path, os.O_RDONLY)
        try:
            with contextlib.suppress(OSError):  # the file system has no locks: continue without one
                fcntl.flock(handle, fcntl.LOCK_EX)
            if self._is_dead():
                self.was_abandoned = True
                with contextlib.suppress(FileNotFoundError):  # its owner ended meanwhile
                    self.owner_file.unlink()
                return
        finally:
            os.close(handle)
        time.sleep(0.1)

    def _is_dead(self) -> bool:
        """Return whether the owner is dead. Raises ``RunLockedError`` for a live one."""
        try:
            owner = _owner(self.owner_file.read_bytes())
            # A time in the future counts as equally far in the past: a live owner would have corrected it.
            age = abs(self._now() - self.owner_file.stat().st_mtime)
        except FileNotFoundError:
            return False
        if owner is None:
            return age > TORN_AFTER_S
        if _is_alive(owner, age):
            raise RunLockedError(
                f"{self.path} is in use by process {owner.pid} on {owner.host}: wait for it, stop it, or choose "
                "another --output_path"
            )
        return True

    def _now(self) -> float:
        """Return the time of the clock that dates the files here: on a network file system that of the server."""
        try:
            with tempfile.TemporaryFile(dir=self.path) as file:
                return os.fstat(file.fileno()).st_mtime
        except OSError:  # a full disk: ``acquire`` reports it
            return time.time()


def _owner(content: bytes) -> Owner | None:
    """Read an owner file; ``None`` if it is torn or damaged."""
    try:
        owner = msgspec.json.decode(content, type=Owner)
    except (ValueError, UnicodeDecodeError):
        return None
    return owner if 0 < owner.pid < 2**31 else None


def _is_alive(owner: Owner, heartbeat_age_s: float) -> bool:
    if owner.host != socket.gethostname():
        return heartbeat_age_s < STALE_AFTER_S
    started = start_time(owner.pid)
    if started is None:
        return False
    return not (started and owner.started) or started == owner.started


def has_live_owner(path: Path) -> bool:
    """Return whether a live process owns a run's folder, without changing anything there."""
    file = path / "owner.json"
    try:
        owner, age = _owner(file.read_bytes()), abs(time.time() - file.stat().st_mtime)
    except OSError:
        return False
    return owner is not None and _is_alive(owner, age)


def check_output_path(path: Path) -> None:
    """Check that an output path is, or can become, a writable folder. Raises ``UsageError`` if it is not."""
    for part in (path, *path.parents):
        if part.exists():
            if not part.is_dir():
                raise UsageError(f"--output_path {path}: {part} is a file, not a folder")
            if not os.access(part, os.W_OK | os.X_OK):
                raise UsageError(f"--output_path {path}: no permission to write into {part}")
            return
