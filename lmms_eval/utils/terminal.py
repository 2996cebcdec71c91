"""Texts of models, servers and data sets made safe to print: control characters are shown, not obeyed."""

from __future__ import annotations

import re
import sys
import threading
import traceback
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType

_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and newline
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks of writing direction
    "\u2028\u2029\ud800-\udfff]"  # separators of lines; halves of characters, which no terminal's encoding takes
)


def printable(text: str) -> str:
    r"""The text with control characters and marks of writing direction as ``\u001b``, the way JSON writes them.

    Newlines and tabs stay. Colours and moves of the cursor are for our own displays, which do not go through here.
    """
    return _UNPRINTABLE.sub(_escaped, text.replace("\r\n", "\n"))


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def guard_standard_error() -> None:
    """Let Python's own warnings, and errors that nobody catches, be printed through ``printable`` and redacted."""
    warnings.formatwarning = _format_warning
    sys.excepthook = _tell
    threading.excepthook = _tell_thread
    sys.unraisablehook = _tell_unraisable


def shown(text: str) -> str:
    """Make a text printable as ``printable`` does, with secrets redacted."""
    from lmms_eval.utils.redaction import redact

    return printable(redact(text))


_plain_warning = warnings.formatwarning


def _format_warning(*args: Any, **more: Any) -> str:
    return shown(_plain_warning(*args, **more))


def _tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    sys.stderr.write(shown("".join(traceback.format_exception(kind, error, trace))))


def _tell_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_type is not SystemExit:
        name = args.thread.name if args.thread is not None else "?"
        trace = "".join(traceback.format_exception(args.exc_type, args.exc_value, args.exc_traceback))
        sys.stderr.write(shown(f"Exception in thread {name}:\n{trace}"))


def _tell_unraisable(args: sys.UnraisableHookArgs) -> None:
    trace = "".join(traceback.format_exception(args.exc_type, args.exc_value, args.exc_traceback))
    sys.stderr.write(shown(f"{args.err_msg or 'Exception ignored in'}: {args.object!r}\n{trace}"))
