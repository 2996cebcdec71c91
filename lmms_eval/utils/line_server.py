"""The child's side of ``line_process``: its standard input and output, kept from the code that runs in it."""

from __future__ import annotations

import os
import queue
import threading
import time
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
