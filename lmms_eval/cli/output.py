"""Writing to standard output and standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TextIO

from lmms_eval.utils.terminal import printable, shown


def emit(lines: str | Iterable[str]) -> None:
    """Print to standard output, control characters escaped; a reader that went away (``| head``) ends the output, not
    the command."""
    text = lines if isinstance(lines, str) else "\n".join(lines)
    try:
        print(printable(text), flush=True)
    except BrokenPipeError:
        _discard(sys.stdout)


def complain(text: str) -> None:
    """Print to standard error, secrets redacted and control characters escaped."""
    try:
        print(shown(text), file=sys.stderr, flush=True)
    except BrokenPipeError:  # the exit code still tells
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Let everything that is still to be written to a stream go nowhere."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, stream.fileno())
    os.close(sink)
