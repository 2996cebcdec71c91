"""A child process of this interpreter that takes and gives lines over pipes.

Started fresh (never forked: a forked child would keep the parent's locks, sockets and GPU memory), in a session of its
own, so that a Ctrl-C reaches the parent alone. It is expected to end when its standard input does.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from lmms_eval.utils.terminal import guard_standard_error

ENDING_S = 1.0
"""A child whose input has ended, but whose work has not, ends itself after so many seconds."""


def own_pipes() -> tuple[queue.SimpleQueue[bytes], IO[bytes]]:
    """Take standard input and output over: the queue of incoming lines, and the file for replies.

    What foreign code prints goes to standard error from now on, and it reads nothing. The queue gives an empty line at
    the end of the input; the process then ends soon, also in the middle of its work.
    """
    incoming, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    guard_standard_error()
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(incoming, lines), daemon=True).start()
    return lines, replies


def _read(incoming: IO[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    for line in incoming:
        lines.put(line)
    lines.put(b"")
    time.sleep(ENDING_S)
    os._exit(1)


_ROOT = str(Path(__file__).parents[2])


def module_command(module: str) -> list[str]:
    """Return the command that runs a module by this interpreter.

    The working folder is on the new process's path only where it is on this one's: ``-m`` alone would let a user's
    ``types.py`` stand for Python's.
    """
    shows_folder = "" in sys.path
    with contextlib.suppress(FileNotFoundError):  # the working folder is gone
        shows_folder = shows_folder or sys.path[:1] == [os.getcwd()]
    return [sys.executable, *([] if shows_folder else ["-P"]), "-m", module]


class ProcessEnded(RuntimeError):
    """The process ended (with ``code``) or did not answer in time."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class LineProcess:
    """``python -m MODULE`` with its standard input and output; ``environment`` is added to the parent's own.

    With ``command`` that is started in the module's place, and ``environment`` is all that it gets. With ``quiet`` what
    it writes to standard error is lost.

    Raises:
        OSError: no process can be started.
    """

    def __init__(
        self,
        module: str,
        environment: Mapping[str, str] | None = None,
        command: Sequence[str] | None = None,
        *,
        quiet: bool = False,
    ) -> None:
        path = os.pathsep.join([_ROOT, *(entry for entry in sys.path if entry)])
        inherited = {} if command is not None else {**os.environ, "PYTHONPATH": path}
        self._module = module
        self._process = subprocess.Popen(
            command or module_command(module),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            env={**inherited, **(environment or {})},
            start_new_session=True,
        )
        assert self._process.stdin is not None  # both were asked for
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._poll = select.poll()  # select.select() takes no file numbers above 1023
        self._poll.register(self._output, select.POLLIN)
        self._buffer = bytearray()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def send(self, line: bytes) -> None:
        """Write one line (without its newline). Raises ``ProcessEnded``."""
        try:
            self._input.write(line + b"\n")
            self._input.flush()
        except OSError as error:
            raise self._ended() from error

    def receive(self, timeout_s: float) -> bytes:
        """The next line, without its newline. Raises ``ProcessEnded`` if none comes within ``timeout_s`` seconds."""
        deadline = time.monotonic() + timeout_s
        end = self._buffer.find(b"\n")
        while end < 0:
            left = deadline - time.monotonic()
            if left <= 0:
                raise ProcessEnded(f"no answer within {timeout_s:g} s")
            if not self._poll.poll(left * 1000):
                continue
            chunk = os.read(self._output.fileno(), 1 << 20)
            if not chunk:
                raise self._ended()
            seen = len(self._buffer)
            self._buffer += chunk
            end = self._buffer.find(b"\n", seen)
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def kill(self) -> None:
        """End the process and what it has started, at once; from any thread. ``close`` is still to be called."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it ended by itself meanwhile
                os.killpg(self._process.pid, signal.SIGKILL)

    def close(self, patience_s: float = 2.0) -> None:
        """End the process in order, or by force if it has not ended after ``patience_s`` seconds."""
        for pipe in (self._input, self._output):
            with contextlib.suppress(OSError):  # the child is gone already
                pipe.close()
        try:
            self._process.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()

    def _ended(self) -> ProcessEnded:
        code = self._process.wait()
        return ProcessEnded(f"the process {self._module} ended with code {code}", code)
