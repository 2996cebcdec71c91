"""The report of an error that ends a command, and the exit code that it stands for."""

from __future__ import annotations

import errno
import os
import traceback
from collections.abc import Sequence

from lmms_eval.cli.output import complain
from lmms_eval.errors import LmmsEvalError

INTERNAL_ERROR = 1
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Faults of a file system, whatever was written to it: no defect, so that no traceback would help."""


def report_error(error: Exception, with_traceback: bool, place: str = "") -> int:
    """Print an error to standard error and return the exit code that it stands for."""
    if os.environ.get("WORLD_SIZE", "1") not in ("", "1"):
        place = f"process {os.environ.get('RANK', '?')}: {place}"
    if isinstance(error, LmmsEvalError):
        if with_traceback:
            complain("".join(traceback.format_exception(error)).rstrip())
        complain(f"error: {place}{error}{_pointer(error.section)}")
        return error.exit_code
    if isinstance(error, OSError) and error.errno in _DISK:
        complain(
            f"error: {place}{error.filename or 'a file'} cannot be written: {error.strerror}; what was finished before "
            "is kept: make room and start the same command again"
        )
        return INTERNAL_ERROR
    complain("".join(traceback.format_exception(error)).rstrip())
    complain(f"error: {place}internal error: {type(error).__name__}: {error}{_pointer('the-run-ends-early')}")
    return INTERNAL_ERROR


def _pointer(section: str) -> str:
    return f" (see docs/troubleshooting.md#{section})" if section else ""


def shows_traceback(arguments: Sequence[str]) -> bool:
    """Tell whether ``--verbosity DEBUG`` (or finer) is in force, by the command line or the environment."""
    level = os.environ.get("VERBOSITY", "")
    for position, word in enumerate(arguments):
        if word == "--verbosity":
            level = arguments[position + 1] if position + 1 < len(arguments) else ""
        elif word.startswith("--verbosity="):
            level = word.partition("=")[2]
    return level.upper() in ("DEBUG", "TRACE")
