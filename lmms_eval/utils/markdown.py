"""Writing Markdown tables the way the family's readers know them.

Numbers stand right, texts left. A column of numbers only shows as many decimals as its most precise cell needs. A
column that begins with a number but holds texts too shows each number with the decimals it needs; one that begins
with a text shows all as given. Widths count East Asian wide characters twice.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from lmms_eval.utils.terminal import printable

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
