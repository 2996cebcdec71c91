"""Last steps of a command, when everything has been printed."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable

_steps: list[Callable[[], None]] = []


def at_end(step: Callable[[], None]) -> None:
    """Have ``step`` called when the command ends; it may not raise."""
    _steps.append(step)


def end() -> None:
    """Take the steps, each once."""
    while _steps:
        _steps.pop(0)()


class LastStep:
    """Ends the process of a command. Registered with ``atexit`` before anything else is loaded, it is called last.

    A kill that comes after a step of ``at_end`` was taken would undo what the step says, namely that the command has
    ended. So nothing follows it: taking the interpreter apart, which lasts 0.2 s once PyTorch is loaded, is left to the
    system. Until ``code`` is set, the process ends as any other.
    """

    def __init__(self) -> None:
        self.code: int | None = None

    def __call__(self) -> None:
        if self.code is None:
            return
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # its reader has gone away, or it was closed
                stream.flush()
        end()
        os._exit(self.code)
