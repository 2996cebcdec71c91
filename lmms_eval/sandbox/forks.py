"""Trying something in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Callable


def in_fork(action: Callable[[], None]) -> str:
    """Run ``action`` in a process of its own, with which its effects end; returns what it raised, empty if nothing."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            text = ""
            try:
                action()
            except (OSError, RuntimeError) as error:
                text = str(error) or type(error).__name__
            os.write(writing, text.encode()[:1000])
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return text or ("" if status == 0 else f"the attempt ended with status {status}")
