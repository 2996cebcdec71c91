"""Keeps a server while the process that wants it lives: whatever ends that one, SIGKILL included, ends the server too.

It leads a process group of its own, to which all belong that the server starts; it ends the group when its standard
input ends or its parent is another. The server's output goes to a file, without the key.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from typing import IO

from lmms_eval.judges.serving.program import KEY
from lmms_eval.utils.line_process import module_command

LOOK_S = 0.5
ENDING_S = 10.0
MOST_LOG_BYTES = 256 * 2**20
"""A server that talks more than that is not written down any further."""


def main(arguments: list[str]) -> int:
    """``arguments``: the parent's process id, the log file, and those of ``program``."""
    parent, log, *command = arguments
    key = os.environ.get(KEY, "").encode()
    server = subprocess.Popen(
        [*module_command("lmms_eval.judges.serving.program"), *command],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    # Not before: the server would ignore them too. Those of ``_end_group`` reach this process as well.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert server.stdout is not None
    copying = threading.Thread(target=_copy, args=(server.stdout, log, key), daemon=True)
    copying.start()
    wanted = threading.Event()
    threading.Thread(target=_watch_input, args=(wanted,), daemon=True).start()
    while server.poll() is None and not wanted.is_set() and os.getppid() == int(parent):
        wanted.wait(LOOK_S)
    code = server.poll()
    _end_group(server)
    copying.join(1.0)
    return 0 if code is None else code if code >= 0 else 128 - code


def _watch_input(ended: threading.Event) -> None:
    while os.read(0, 4096):
        pass
    ended.set()


def _copy(output: IO[bytes], log: str, key: bytes) -> None:
    """Write lines to the file as they come."""
    written = 0
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab", buffering=0) as file:
        while line := output.readline(1 << 16):
            line = line.replace(key, b"[REDACTED]") if key else line
            written += len(line)
            if written <= MOST_LOG_BYTES:
                with contextlib.suppress(OSError):  # a full disk must not stop the server
                    file.write(line)


def _end_group(server: subprocess.Popen[bytes]) -> None:
    """Ask the server and all that it has started to end, and end this group with everything that is left in it."""
    os.killpg(0, signal.SIGTERM)
    end = time.monotonic() + ENDING_S
    while server.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    if server.poll() is None:
        server.kill()
        server.wait()


if __name__ == "__main__":
    ended = main(sys.argv[1:])
    if ended:
        sys.stderr.write(f"{ended}\n")
        sys.stderr.flush()
    os.killpg(0, signal.SIGKILL)
