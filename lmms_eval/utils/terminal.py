"""Texts of models, servers and data sets made safe to print: control characters are shown, not obeyed."""

from __future__ import annotations

import codecs
import re
import sys
import threading
import traceback
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

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


def is_live(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Tell whether a line that was written can be written over: a terminal, and none that only appends."""
    return stream.isatty() and environ.get("TERM") != "dumb"


def takes_colours(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Tell whether to write in colours: not with ``NO_COLOR``, else with ``FORCE_COLOR``, else to a live terminal."""
    if environ.get("NO_COLOR"):
        return False
    return bool(environ.get("FORCE_COLOR")) or is_live(stream, environ)


def encodable(text: str, stream: TextIO) -> str:
    """Return a text that the stream's encoding has all characters of: arrows and dashes by their nearest in ASCII."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, _PLAINLY).decode(encoding)


_PLAINLY = "lmms_eval.plainly"
_PLAIN = {
    "\u2191": "^", "\u2193": "v", "\u00b1": "+-", "\u00b1 ": "+-", "\u2013": "-", "\u2014": "-", "\u2026": "...",
    "\u2192": "->", "\u00d7": "x", "\u2264": "<=", "\u2265": ">=", "\u2212": "-", "\u00b7": "-", "\u2018": "'",
    "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u0394": "d",
}  # fmt: skip
"""Characters of our own tables and texts. With a space behind it, plus-minus keeps its width."""


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text, start = error.object, error.start
    longer = _PLAIN.get(text[start : start + 2])
    if longer is not None:
        return longer, start + 2
    return _PLAIN.get(text[start]) or text[start].encode("ascii", "backslashreplace").decode("ascii"), start + 1


codecs.register_error(_PLAINLY, _plainly)


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


_FORMULA = re.compile(r'(?:^|(?<=[;\t\r\n]))(?=[ \t\r"]*[=+\-@]|[\t\r])')
"""Where a formula may begin: in front of a text, and where a spreadsheet may take its rest for a cell of its own. One
whose cells end with semicolons splits the lines of a CSV file there, whatever is quoted."""


def no_formula(text: str) -> str:
    """Return a text no part of which a spreadsheet takes for a formula: such a part gets an apostrophe in front."""
    return _FORMULA.sub("'", text)
