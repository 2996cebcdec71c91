"""Safe output of texts from models, servers and data sets: escapes, encodings, colours, and Markdown tables."""

from __future__ import annotations

import codecs
import re
import sys
import threading
import traceback
import unicodedata
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TextIO

if TYPE_CHECKING:
    from types import TracebackType


_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except tab and newline
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks of writing direction
    "\u2028\u2029\ud800-\udfff]"  # line separators; surrogates, which no encoding accepts
)
_PLAINLY = "lmms_eval.plainly"
_PLAIN = {
    "\u2191": "^", "\u2193": "v", "\u00b1": "+-", "\u00b1 ": "+-", "\u2013": "-", "\u2014": "-", "\u2026": "...",
    "\u2192": "->", "\u00d7": "x", "\u2264": "<=", "\u2265": ">=", "\u2212": "-", "\u00b7": "-", "\u2018": "'",
    "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u0394": "d",
}  # fmt: skip
"""Replacements for characters in this package's output. Plus-minus with a space after it keeps its width."""
_plain_warning = warnings.formatwarning
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_MARKUP = re.compile(r"[\\`*{}\[\]<>#!&~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_MIN_WIDTH = 3
_FORMULA = re.compile(r'(?:^|(?<=[;\t\r\n]))(?=[ \t\r"]*[=+\-@]|[\t\r])')
"""Positions where a formula may begin: the beginning of a text, and separators after which a spreadsheet may begin a
new cell. Spreadsheets that separate cells with semicolons split there even in quoted text."""


def printable(text: str) -> str:
    r"""Escape control characters and marks of writing direction as JSON does (``\u001b``). Newlines and tabs stay.

    Displays of this package that use colours or move the cursor do not call this function.
    """
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text.replace("\r\n", "\n"))


def is_live(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether a stream is a terminal that can overwrite a written line."""
    return stream.isatty() and environ.get("TERM") != "dumb"


def takes_colours(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether to use colours: never with ``NO_COLOR``, always with ``FORCE_COLOR``, else on a live terminal."""
    if environ.get("NO_COLOR"):
        return False
    return bool(environ.get("FORCE_COLOR")) or is_live(stream, environ)


_COLOURS = {"good": "32", "bad": "31", "between": "33"}
_CELL = re.compile(
    r"(?<!\\)(?<=\|)( *)"
    r"((?:(?P<good>OK|agrees|better|complete|correct|held)|(?P<bad>broken|failed|fell|worse|wrong)"
    r"|(?P<between>cannot [t]ell|differs by|interrupted|not comparable|not evaluated|partly|skipped|stopped early"
    r"|unscored|warning|withheld))(?![\w@./-])(?:\\\||[^|\x1b])*+)(?=\|)"
)
"""A cell of a Markdown table that begins with a verdict."""


def coloured(text: str) -> str:
    """Colour the verdicts in the cells of tables: green, red, or yellow for neither; widths do not change."""

    def shown(cell: re.Match[str]) -> str:
        code = next(code for name, code in _COLOURS.items() if cell[name])
        words = cell[2].rstrip(" ")
        return f"{cell[1]}\x1b[{code}m{words}\x1b[0m{' ' * (len(cell[2]) - len(words))}"

    return "\n".join(_CELL.sub(shown, line) if line.startswith("|") else line for line in text.split("\n"))


def encodable(text: str, stream: TextIO) -> str:
    """Replace the characters that the stream's encoding lacks: arrows and dashes by similar ASCII characters."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, _PLAINLY).decode(encoding)


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
    """Make Python escape and redact what it prints itself: warnings and uncaught exceptions."""
    warnings.formatwarning = lambda *args, **more: shown(_plain_warning(*args, **more))
    sys.excepthook = _print_error
    threading.excepthook = _print_thread_error
    sys.unraisablehook = _print_unraisable


def shown(text: str) -> str:
    """Return a text as ``printable`` does, with secrets redacted."""
    from lmms_eval.utils.redaction import redact

    return printable(redact(text))


def _print_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    sys.stderr.write(shown("".join(traceback.format_exception(kind, error, trace))))


def _print_thread_error(args: threading.ExceptHookArgs) -> None:
    if args.exc_type is not SystemExit:
        name = args.thread.name if args.thread is not None else "?"
        trace = "".join(traceback.format_exception(args.exc_type, args.exc_value, args.exc_traceback))
        sys.stderr.write(shown(f"Exception in thread {name}:\n{trace}"))


def _print_unraisable(args: sys.UnraisableHookArgs) -> None:
    trace = "".join(traceback.format_exception(args.exc_type, args.exc_value, args.exc_traceback))
    sys.stderr.write(shown(f"{args.err_msg or 'Exception ignored in'}: {args.object!r}\n{trace}"))


class Column(NamedTuple):
    """A heading and its cells. A named tuple, since importing dataclasses would slow down shell completion.

    Args:
        is_text: the cells are never formatted as numbers.
    """

    heading: str
    cells: tuple[str, ...]
    is_text: bool = False


def display_width(text: str) -> int:
    """Return the columns of a terminal that a text occupies; marks that combine with the letter before take none."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _trimmed(cell: str) -> str:
    return cell.rstrip("0").rstrip(".") if "." in cell else cell


def column_layout(column: Column) -> tuple[tuple[str, ...], tuple[bool, ...], bool]:
    """Return the formatted cells, which of them are right-aligned, and whether the column holds only numbers."""
    cells = tuple(re.sub(r"(?<!\s)\s*\n\s*", " ", cell) for cell in column.cells)
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
    return cells, tuple(is_number), all_numbers


def escaped(text: str) -> str:
    """Escape a text for Markdown, so that it has no markup, HTML, links or line breaks.

    ``markdown_table`` escapes the bar ``|``.
    """
    shown = printable(" ".join(text.split()))
    return _MARKUP.sub(r"\\\g<0>", shown)


def markdown_table(columns: Sequence[Column]) -> str:
    """Return a Markdown table that ends with a newline; ``|`` and line breaks in cells are escaped."""
    parts: list[list[str]] = []
    for column in columns:
        plain, right, all_numbers = column_layout(column)
        cells = [cell.replace("|", "\\|") for cell in plain]
        width = max(_MIN_WIDTH, display_width(column.heading), *map(display_width, cells))
        blanks = width - display_width(column.heading)
        heading = " " * (blanks // 2) + column.heading + " " * (blanks - blanks // 2)
        rule = "-" * (width - 1) + (":" if all_numbers else "-")
        lines = [heading, rule]
        for cell, is_right in zip(cells, right, strict=True):
            blank = " " * (width - display_width(cell))
            lines.append(blank + cell if is_right else cell + blank)
        parts.append(lines)
    return "".join(f"|{'|'.join(line)}|\n" for line in zip(*parts, strict=True)) if parts else "||\n||\n"


def named_table(columns: Mapping[str, Iterable[str]], numbers: Collection[str] = ()) -> str:
    """Return a Markdown table of columns by heading. Only cells of the columns ``numbers`` are formatted as numbers."""
    return markdown_table([Column(head, tuple(cells), head not in numbers) for head, cells in columns.items()])


def no_formula(text: str) -> str:
    """Put an apostrophe before every part of a text that a spreadsheet would take for a formula."""
    return _FORMULA.sub("'", text)
