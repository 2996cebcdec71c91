"""The keeper of a job: a process that starts the run, writes its log, stops it, and records durably how it ended.

``python -m lmms_eval.server.keeper FOLDER``. It outlives the server, which finds it again by the lock on the folder.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from lmms_eval.errors import JournalError
from lmms_eval.processes import descendants
from lmms_eval.server.folder import Exit, JobFolder
from lmms_eval.server.job_log import LogWriter, MaskedLog
from lmms_eval.server.store import now
from lmms_eval.storage.run_folder import start_time
from lmms_eval.utils.redaction import learn_secrets

_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36
_BETWEEN_S = 0.02
POLL_S = 0.1
_READ_BYTES = 1 << 16
_DRAIN_S = 2.0
"""Seconds to read what is left in the pipe after every process that could write to it has ended."""
_RETRY_S = 1.0


def _prctl(option: int, value: int) -> None:
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def kill_descendants(patience_s: float = 5.0) -> None:
    """Kill every descendant of this process and wait up to ``patience_s`` seconds until they are gone."""
    deadline = time.monotonic() + patience_s
    found = [0]
    while found:
        found = descendants(os.getpid()) if time.monotonic() < deadline else []
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(_BETWEEN_S if found else 0)


@dataclass(slots=True)
class Keeper:
    """Runs the command of a job's folder to its end."""

    folder: JobFolder
    _is_suspended: bool = field(init=False, default=False)
    _asked_at: float | None = field(init=False, default=None)

    def run(self) -> None:
        """Start the run and wait for its end. Raises ``OSError`` if the folder cannot be used."""
        start = self.folder.read(self.folder.start_file)
        command = [str(word) for word in start.get("command", [])]
        self.folder.reserve_exit()
        if self.folder.cancel_file.exists():
            self._note(Exit(-signal.SIGTERM, now(), "cancelled before it was started"))
            return
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(name, self._suspend)
        learn_secrets({}, os.environ)
        log = MaskedLog(LogWriter(self.folder.log))
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=self.folder.work,
                start_new_session=True,
                preexec_fn=lambda: _prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM),
            )
        except OSError as error:
            self._note(Exit(127, now(), f"the run cannot be started: {error.strerror or error}"))
            return
        with contextlib.suppress(JournalError):  # used only to end the run after this process was killed
            self.folder.write(self.folder.child_file, {"pid": child.pid, "started": start_time(child.pid)})
        grace_s = float(start.get("grace_s", 30.0))
        assert child.stdout is not None
        pipe = child.stdout.fileno()
        os.set_blocking(pipe, False)
        with selectors.DefaultSelector() as selector, child.stdout:
            selector.register(pipe, selectors.EVENT_READ)
            while child.poll() is None:
                if selector.select(POLL_S):
                    self._copy(pipe, log, selector)
                self._end_if_asked(child, grace_s)
            kill_descendants()  # processes that the run has left
            deadline = time.monotonic() + _DRAIN_S
            while selector.get_map() and selector.select(POLL_S) and time.monotonic() < deadline:
                self._copy(pipe, log, selector)
        code = int(child.returncode)
        log.close()
        if not self._is_suspended or code == 0:
            self._note(Exit(code, now()))

    def _suspend(self, _number: int, _frame: FrameType | None) -> None:
        self._is_suspended = True

    def _copy(self, pipe: int, log: MaskedLog, selector: selectors.BaseSelector) -> None:
        with contextlib.suppress(BlockingIOError):
            data = os.read(pipe, _READ_BYTES)
            if data:
                log.write(data)
            else:
                selector.unregister(pipe)

    def _end_if_asked(self, child: subprocess.Popen[bytes], grace_s: float) -> None:
        """Send the run SIGTERM once, if it is to end; kill it and its descendants when the grace period is over."""
        if self._asked_at is None:
            if self.folder.cancel_file.exists():
                self._is_suspended = False
            elif self.folder.suspend_file.exists():
                self._is_suspended = True
            elif not self._is_suspended:
                return
            self._asked_at = time.monotonic()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGTERM)
        elif time.monotonic() > self._asked_at + grace_s:
            for pid in descendants(os.getpid()):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)

    def _note(self, ended: Exit) -> None:
        """Record the end, and retry while the disk cannot be written."""
        while True:
            try:
                self.folder.write_exit(ended)
            except OSError:
                time.sleep(_RETRY_S)
            else:
                return


def end_leftover(folder: JobFolder) -> None:
    """Kill the process that an earlier keeper started, if it is still alive."""
    child: dict[str, Any] = folder.read(folder.child_file)
    pid, started = child.get("pid"), child.get("started")
    if isinstance(pid, int) and pid > 1 and started and start_time(pid) == started:
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
        while start_time(pid) == started:
            time.sleep(POLL_S)


def main(arguments: list[str]) -> int:
    folder = JobFolder(Path(arguments[0]))
    if folder.hold() is None or folder.exit() is not None:
        return 0
    _prctl(_SET_CHILD_SUBREAPER, 1)  # this process becomes the parent of descendants whose own parent dies
    end_leftover(folder)
    folder.work.mkdir(exist_ok=True)
    Keeper(folder).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
