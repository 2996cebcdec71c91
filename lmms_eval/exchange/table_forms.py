"""The forms of a table of runs: Markdown, LaTeX, HTML and CSV. Texts of runs and data are escaped in each."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

from lmms_eval.exchange.score_table import Heading, ScoreTable, TableCell, TableRecord
from lmms_eval.utils.latex import latex_document, latex_float, latex_line, latex_text, tabular
from lmms_eval.utils.records import to_dict
from lmms_eval.utils.terminal import Column, escaped, markdown_table, no_formula, printable
from lmms_eval.viewer.page import static_page

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def note_letter(place: int) -> str:
    """Return the letter of a note: a to z, then aa, ab, ..."""
    before, last = divmod(place, len(_LETTERS))
    return (note_letter(before - 1) if before else "") + _LETTERS[last]


def _letters(places: Sequence[int]) -> str:
    return ",".join(map(note_letter, places))


def markdown(table: ScoreTable) -> str:
    """Format a table as Markdown: the table, the sentences of its caption, the notes."""
    heads = [Column("", tuple(_plain_heading(row) for row in table.rows), is_text=True)]
    for place, heading in enumerate(table.columns):
        cells = tuple(_plain_cell(line[place]) for line in table.cells)
        heads.append(Column(_plain_heading(heading), cells, is_text=True))
    notes = [f"* ({note_letter(place)}) {escaped(note)}" for place, note in enumerate(table.notes)]
    caption = " ".join(map(escaped, table.caption))
    return "\n\n".join([markdown_table(heads).rstrip("\n"), caption, *(["\n".join(notes)] if notes else [])]) + "\n"


def _plain_heading(heading: Heading) -> str:
    notes = f" ({_letters(heading.notes)})" if heading.notes else ""
    return f"{escaped(heading.name)}{f' {escaped(heading.detail)}' if heading.detail else ''}{notes}"


def _plain_cell(cell: TableCell) -> str:
    value = f"**{cell.value}**" if cell.is_bold else cell.value
    notes = f" ({_letters(cell.notes)})" if cell.notes else ""
    return f"{value}{cell.mark}{f' {cell.around}' if cell.around else ''}{notes}"


def latex(table: ScoreTable) -> str:
    """Format a table as a LaTeX ``table`` for the package booktabs. Intervals are below their numbers."""
    stacks = any(cell.around.startswith("[") for line in table.cells for cell in line)
    body = []
    for row, cells in zip(table.rows, table.cells, strict=True):
        name = latex_text(row.name)
        name = f"\\textit{{{name}}}" if row.is_apart else name
        detail = f" {_small(row.detail)}" if row.detail else ""
        lines = [[f"{name}{detail}{_latex_notes(row.notes)}", *(_latex_cell(cell, not stacks) for cell in cells)]]
        if stacks and any(cell.around for cell in cells):
            lines.append(["", *(_small(cell.around) for cell in cells)])
        body.append(lines)
    notes = [f"\\textsuperscript{{{note_letter(place)}}} {latex_text(note)}" for place, note in enumerate(table.notes)]
    caption = " ".join(map(latex_text, table.caption))
    made = tabular("l" + "c" * len(table.columns), list(_latex_head(table.columns)), body)
    return latex_document(latex_float(made, latex_text(table.title), caption, notes, _width(table, stacks)))


def _latex_head(columns: Sequence[Heading]) -> Iterator[str]:
    """Yield the lines of the head. Neighbours of one name, such as a benchmark's numbers, share their name."""
    names, rules, first = [""], "", 2
    for name, group in groupby(columns, key=lambda one: one.name):
        count = len(list(group))
        names.append(f"\\multicolumn{{{count}}}{{c}}{{{latex_text(name)}}}" if count > 1 else latex_text(name))
        rules += f"\\cmidrule(lr){{{first}-{first + count - 1}}}\n" if count > 1 else ""
        first += count
    yield latex_line(names)
    yield rules
    details = [f"{_small(one.detail)}{_latex_notes(one.notes)}" for one in columns]
    if any(one.detail or one.notes for one in columns):
        yield latex_line(["", *details])


def _width(table: ScoreTable, stacks: bool) -> int:
    """Return the letters of a table's widest line, with the gaps between columns."""
    counts = Counter(one.name for one in table.columns)
    width = max(len(f"{row.name} {row.detail}") for row in table.rows)
    for place, heading in enumerate(table.columns):
        texts = [heading.name[: len(heading.name) // counts[heading.name] + 1], heading.detail]
        for line in table.cells:
            cell = line[place]
            texts += [cell.value, cell.around] if stacks else [f"{cell.value} {cell.around}"]
        width += max(map(len, texts)) + 2
    return width


def _small(text: str) -> str:
    return f"{{\\scriptsize {latex_text(text)}}}" if text else ""


def _latex_notes(places: Sequence[int], mark: str = "") -> str:
    raised = ",".join(filter(None, (latex_text(mark), _letters(places))))
    return f"\\textsuperscript{{{raised}}}" if raised else ""


def _latex_cell(cell: TableCell, has_around: bool) -> str:
    value = latex_text(cell.value)
    value = f"\\textbf{{{value}}}" if cell.is_bold else value
    around = f" {_small(cell.around)}" if has_around and cell.around else ""
    return f"{value}{around}{_latex_notes(cell.notes, cell.mark)}"


def html(table: ScoreTable) -> str:
    """Format a table as a page that holds everything, without scripts."""
    head = "".join(f'<th class="number" scope="col">{_html_heading(one)}</th>' for one in table.columns)
    rows = "".join(
        f'<tr><th scope="row">{_html_heading(row)}</th>'
        + "".join(f'<td class="number">{_html_cell(cell)}</td>' for cell in cells)
        + "</tr>"
        for row, cells in zip(table.rows, table.cells, strict=True)
    )
    caption = " ".join(map(_text, table.caption))
    notes = "".join(f"<li>({note_letter(place)}) {_text(note)}</li>" for place, note in enumerate(table.notes))
    body = (
        f"<main>\n<h1>{_text(table.title)}</h1>\n"
        '<div class="scroll" role="region" aria-label="Scores" tabindex="0">'
        f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{rows}</tbody></table></div>\n"
        f'<p class="quiet wrapped">{caption}</p>\n<ul class="quiet wrapped">{notes}</ul>\n</main>'
    )
    return static_page(table.title, body)


def _html_heading(heading: Heading) -> str:
    name = f"<bdi>{_text(heading.name)}</bdi>"
    name = f"<i>{name}</i>" if heading.is_apart else name
    detail = f'<br><span class="quiet">{_text(heading.detail)}</span>' if heading.detail else ""
    return f"{name}{_html_notes(heading.notes)}{detail}"


def _html_cell(cell: TableCell) -> str:
    value = f"<b>{_text(cell.value)}</b>" if cell.is_bold else _text(cell.value)
    mark = f"<sup>{_text(cell.mark)}</sup>" if cell.mark else ""
    around = f'<br><span class="quiet">{_text(cell.around)}</span>' if cell.around else ""
    return f"{value}{mark}{_html_notes(cell.notes)}{around}"


def _html_notes(places: Sequence[int]) -> str:
    return f"<sup>{_letters(places)}</sup>" if places else ""


def _text(text: str) -> str:
    return escape(printable(text))


def csv_lines(table: ScoreTable) -> str:
    """Format the numbers of a table as CSV: a line for each, in full precision, with everything known about it."""
    text = io.StringIO()
    writer = csv.DictWriter(text, TableRecord.__struct_fields__, lineterminator="\n")
    writer.writeheader()
    for record in table.records:
        cells = to_dict(record)
        writer.writerow({name: no_formula(value) if isinstance(value, str) else value for name, value in cells.items()})
    return text.getvalue()
