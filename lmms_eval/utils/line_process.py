"""A child Python process that exchanges lines with its parent over pipes.

The child is started fresh, not forked, since a forked child would keep the parent's locks, sockets and GPU memory. It
has its own session, so that Ctrl-C reaches only the parent, and must end when its standard input ends.
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
"""Seconds after the end of its input until a child that is still working ends itself."""
_ROOT = str(Path(__file__).parents[2])


def own_pipes() -> tuple[queue.SimpleQueue[bytes], IO[bytes]]:
    """Take over standard input and output. Return the queue of incoming lines, and the file for replies.

    From now on, foreign code prints to standard error and reads nothing. At the end of the input, the queue yields an
    empty line, and the process ends soon after that, even in the middle of its work.
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


def module_command(module: str) -> list[str]:
    """Return the command that runs a module with this interpreter.

    The working folder is on the new process's path only if it is on this one's. With ``-m`` alone, a user's
    ``types.py`` would replace Python's.
    """
    shows_folder = "" in sys.path
    with contextlib.suppress(FileNotFoundError):  # the working folder was deleted
        shows_folder = shows_folder or sys.path[:1] == [os.getcwd()]
    return [sys.executable, *([] if shows_folder else ["-P"]), "-m", module]


class ProcessEnded(RuntimeError):
    """The process ended (with ``code``) or did not answer in time."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class LineProcess:
    """A child process ``python -m MODULE`` that exchanges lines.

    Args:
        module: the module to run.
        environment: variables in addition to the parent's; with ``command``, all variables.
        command: command to start instead of the module.
        quiet: discard the child's standard error.

    Raises:
        OSError: the process cannot be started.
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
        assert self._process.stdin is not None  # both are pipes
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
        """Return the next line without its newline. Raises ``ProcessEnded`` after ``timeout_s`` seconds without one."""
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
        """Kill the process and its children at once. Any thread may call this; ``close`` must still be called."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                os.killpg(self._process.pid, signal.SIGKILL)

    def close(self, patience_s: float = 2.0) -> None:
        """End the process gracefully, or kill it after ``patience_s`` seconds."""
        for pipe in (self._input, self._output):
            with contextlib.suppress(OSError):  # the child has already ended
                pipe.close()
        try:
            self._process.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()

    def _ended(self) -> ProcessEnded:
        code = self._process.wait()
        return ProcessEnded(f"the process {self._module} ended with code {code}", code)
