"""A pseudo-terminal in which a test types at a program and reads what it writes."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

PATIENCE_S = 60.0


@dataclass(slots=True)
class Terminal:
    """The terminal's end of a program."""

    process: subprocess.Popen[bytes]
    end: int
    seen: bytes = field(default=b"")

    def type(self, text: str) -> None:
        os.write(self.end, text.encode())

    def wait_for(self, text: str) -> str:
        """Read until the text has been written; what was written up to there is returned and forgotten."""
        wanted, until = text.encode(), time.monotonic() + PATIENCE_S
        while wanted not in self.seen:
            if not self._read(until - time.monotonic()):
                raise AssertionError(
                    f"{text!r} was not written; the terminal shows {self.seen.decode('utf-8', 'replace')!r}"
                )
        before, _, self.seen = self.seen.partition(wanted)
        return before.decode("utf-8", "replace")

    def read_to_end(self) -> str:
        """Read all until the program has ended."""
        until = time.monotonic() + PATIENCE_S
        while self._read(until - time.monotonic()):
            pass
        self.process.wait(max(1.0, until - time.monotonic()))
        return self.seen.decode("utf-8", "replace")

    def _read(self, patience: float) -> bool:
        ready, _, _ = select.select([self.end], [], [], max(patience, 0))
        if not ready:
            return False
        try:
            part = os.read(self.end, 65536)
        except OSError:  # the program has ended
            return False
        self.seen += part
        return bool(part)


@contextmanager
def terminal(command: Sequence[str], environ: Mapping[str, str], columns: int = 80) -> Iterator[Terminal]:
    """Start a program with a terminal of its own; it is killed at the end."""
    end, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def take_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        command,
        stdin=inner,
        stdout=inner,
        stderr=inner,
        env=dict(environ),
        start_new_session=True,
        preexec_fn=take_terminal,
    )
    os.close(inner)
    try:
        yield Terminal(process, end)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE_S)
        os.close(end)
