"""Texts of models, servers and data sets made safe to print: control characters are shown, not obeyed."""

from __future__ import annotations

import codecs
import re
import sys
import threading
import traceback
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_MARKUP = re.compile(r"[\\`*{}\[\]<>#!&~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_MIN_WIDTH = 3


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and its cells; a column of names is never read as numbers."""

    heading: str
    cells: tuple[str, ...]
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class _Layout:
    cells: tuple[str, ...]
    right: tuple[bool, ...]
    all_numbers: bool
    width: int


def display_width(text: str) -> int:
    """Columns of a terminal that a text takes."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _trimmed(cell: str) -> str:
    return cell.rstrip("0").rstrip(".") if "." in cell else cell


def _layout(column: Column) -> _Layout:
    cells = column.cells
    is_number = [not column.is_text and _NUMBER.fullmatch(cell) is not None for cell in cells]
    filled = [number for number, cell in zip(is_number, cells, strict=True) if cell.strip()]
    all_numbers = bool(filled) and all(filled)
    if all_numbers:
        decimals = max(len(_trimmed(cell).partition(".")[2]) for cell in cells if cell.strip())
        cells = tuple(
            f"{float(cell):.{decimals}f}" if cell and ("." in cell or decimals) else cell
            for cell in [cell if cell.strip() else "" for cell in cells]
        )
    elif filled and filled[0]:
        cells = tuple(_trimmed(cell) if number else cell for cell, number in zip(cells, is_number, strict=True))
    else:
        is_number = [False] * len(cells)
    width = max(_MIN_WIDTH, display_width(column.heading), *(display_width(cell) for cell in cells))
    return _Layout(cells, tuple(is_number), all_numbers, width)


def _padded(text: str, width: int, right: bool) -> str:
    blanks = " " * (width - display_width(text))
    return blanks + text if right else text + blanks


def _centred(text: str, width: int) -> str:
    blanks = width - display_width(text)
    return " " * (blanks // 2) + text + " " * (blanks - blanks // 2)


def escaped(text: str) -> str:
    """Return a text of a model or a data set as Markdown that shows it as it is: no markup, HTML, link or line break.

    The bar ``|`` is left to ``markdown_table``.
    """
    shown = printable(" ".join(text.split()))
    return _MARKUP.sub(r"\\\g<0>", shown)


def markdown_table(columns: Sequence[Column]) -> str:
    """The table with a newline at the end; ``|`` and line breaks in cells are escaped."""
    clean = [
        Column(
            c.heading, tuple(re.sub(r"(?<!\s)\s*\n\s*", " ", cell).replace("|", "\\|") for cell in c.cells), c.is_text
        )
        for c in columns
    ]
    layouts = [_layout(column) for column in clean]
    heading = [_centred(c.heading, layout.width) for c, layout in zip(clean, layouts, strict=True)]
    rule = ["-" * (layout.width - 1) + (":" if layout.all_numbers else "-") for layout in layouts]
    lines = [heading, rule]
    for index in range(len(clean[0].cells) if clean else 0):
        lines.append([_padded(layout.cells[index], layout.width, layout.right[index]) for layout in layouts])
    return "".join(f"|{'|'.join(line)}|\n" for line in lines)


_FORMULA = re.compile(r'(?:^|(?<=[;\t\r\n]))(?=[ \t\r"]*[=+\-@]|[\t\r])')
"""Where a formula may begin: in front of a text, and where a spreadsheet may take its rest for a cell of its own. One
whose cells end with semicolons splits the lines of a CSV file there, whatever is quoted."""


def no_formula(text: str) -> str:
    """Return a text no part of which a spreadsheet takes for a formula: such a part gets an apostrophe in front."""
    return _FORMULA.sub("'", text)
