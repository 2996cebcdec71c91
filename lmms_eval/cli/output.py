"""Writing to standard output and standard error."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable
from typing import TextIO

from lmms_eval.errors import LmmsEvalError
from lmms_eval.utils.terminal import encodable, printable, shown

_GONE = (errno.EPIPE, errno.EIO)
"""The reader, or the terminal."""


def emit(lines: str | Iterable[str], masks: bool = True) -> None:
    """Print to standard output, known secrets masked and control characters escaped and characters that its
    encoding lacks replaced; a reader that went away (``| head``) ends the output, not the command.

    Args:
        lines: a text, or its lines.
        masks: mask secrets. Only the address of a page that this command serves goes out with its token.

    Raises:
        LmmsEvalError: the output goes to a file that cannot be written.
    """
    from lmms_eval.utils.redaction import mask_known

    text = lines if isinstance(lines, str) else "\n".join(lines)
    try:
        print(encodable(printable(mask_known(text) if masks else text), sys.stdout), flush=True)
    except OSError as error:
        _discard(sys.stdout)
        if error.errno not in _GONE:
            raise LmmsEvalError(
                f"cannot write to standard output: {error.strerror or error}; files that were written before are kept"
            ) from error


def complain(text: str) -> None:
    """Print to standard error, secrets redacted and control characters escaped."""
    try:
        print(encodable(shown(text), sys.stderr), file=sys.stderr, flush=True)
    except OSError:  # the exit code still tells
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Let everything that is still to be written to a stream go nowhere."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, stream.fileno())
    os.close(sink)
