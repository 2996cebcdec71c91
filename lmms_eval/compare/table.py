"""Output of a comparison: tables with notes, JSON, CSV, Markdown, and the forest plot."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson
from msgspec import Struct

from lmms_eval.compare.flips import Flip
from lmms_eval.compare.verdicts import (
    Comparison,
    Difference,
    PairComparison,
    PromptDifference,
    Verdict,
    metric_text,
)
from lmms_eval.plots.figure import picture
from lmms_eval.plots.forest import ForestPanel, ForestRow, Look, forest_panels
from lmms_eval.stats.interval import Interval
from lmms_eval.utils.latex import latex_document, latex_float, latex_tabular, latex_text
from lmms_eval.utils.names import some_of
from lmms_eval.utils.records import to_dict
from lmms_eval.utils.terminal import Column, display_width, escaped, markdown_table, no_formula


def comparison_json(comparison: Comparison) -> str:
    """Format a whole comparison as JSON; NaN and infinite numbers are ``null``."""
    return json.dumps(_plain(to_dict(comparison)), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def comparison_csv(comparison: Comparison) -> str:
    """Format a comparison as CSV, with a line for each row and cell. Texts are escaped to prevent formulas."""
    text = io.StringIO()
    lines = [_line(pair, row, by) for pair in comparison.pairs for by, row in _rows(pair)]
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def flips_json(flips: Iterable[Flip]) -> Iterator[str]:
    """Format flips as lines of JSON; NaN and infinite numbers are ``null``."""
    for flip in flips:
        try:
            yield orjson.dumps(to_dict(flip), option=orjson.OPT_APPEND_NEWLINE).decode("utf-8")
        except TypeError:  # a text with a lone surrogate
            yield json.dumps(_plain(to_dict(flip)), ensure_ascii=False, allow_nan=False) + "\n"


def _rows(pair: PairComparison) -> Iterator[tuple[str, Difference]]:
    yield from (("", row) for row in pair.rows)
    yield from ((by, cell) for by, cells in pair.cells.items() for cell in cells)


def _line(pair: PairComparison, row: Difference, by: str) -> dict[str, Any]:
    pairing, sensitivity = row.pairing, row.sensitivity
    changed = row.changed or (None, None)
    found = {
        "first_run": pair.first,
        "second_run": pair.second,
        "name": row.name,
        "by": by,
        "cell": row.cell,
        "metric": row.metric,
        "filter": row.filter,
        "higher_is_better": row.higher_is_better,
        "first": row.first,
        "second": row.second,
        "difference": row.value,
        "low": row.interval.low if row.interval else None,
        "high": row.interval.high if row.interval else None,
        "interval": row.interval.method if row.interval else row.no_interval,
        "estimand": row.estimand,
        "p": row.p,
        "p_holm": row.p_holm,
        "p_bh": row.p_bh,
        "test": row.test,
        "verdict": row.verdict,
        "own_settings": row.own_settings,
        "detectable": row.detectable,
        "needed": row.needed,
        "needed_least": row.needed_least,
        "paired": pairing.paired,
        "first_better": changed[0],
        "first_worse": changed[1],
        "only_first": pairing.only_first,
        "only_second": pairing.only_second,
        "unscored_first": pairing.unscored[0],
        "unscored_second": pairing.unscored[1],
        "failed_first": pairing.failed[0],
        "failed_second": pairing.failed[1],
        "difference_counted_wrong": sensitivity.difference if sensitivity else None,
        "least_difference": sensitivity.low if sensitivity else None,
        "greatest_difference": sensitivity.high if sensitivity else None,
        **_rerun_cells(row),
        "notes": "; ".join(row.notes),
    }
    return {key: no_formula(value) if isinstance(value, str) else _plain(value) for key, value in found.items()}


def _rerun_cells(row: Difference) -> dict[str, Any]:
    found = row.reruns
    interval = None if found is None else found.interval
    return {
        "rerun_error": None if found is None else found.error,
        "rerun_half_width": None if found is None else found.half_width,
        "rerun_half_width_high": None if found is None else found.half_width_high,
        "beyond_rerun_noise": None if found is None else found.is_beyond,
        "rerun_low": None if interval is None else interval.low,
        "rerun_high": None if interval is None else interval.high,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


_LOOKS: dict[Verdict, Look] = {
    "better": "up",
    "worse": "down",
    "equivalent": "same",
    "ahead on this list": "up",
    "behind on this list": "down",
    "equivalent on this list": "same",
    "cannot tell": "open",
}
PERCENT = "percent"


def forest_plot(comparison: Comparison, ending: str) -> bytes:
    """Draw the forest plot as PNG or SVG, by the suffix of its file.

    Each pair of runs has a panel for shares (in percentage points) and a panel for each other metric.

    Raises:
        UsageError: the suffix is neither of them.
        PlotUnavailable: matplotlib is not installed.
    """
    panels = [panel for pair in comparison.pairs for panel in _panels(pair, comparison.margin)]
    return picture(
        forest_panels(f"Differences with their {100 * (1 - comparison.alpha):g} % intervals", panels), ending
    )


def _panels(pair: PairComparison, margin: float | None) -> Iterator[ForestPanel]:
    by_scale: dict[str, list[Difference]] = {}
    for row in pair.rows:
        by_scale.setdefault(PERCENT if row.unit == PERCENT else row.metric, []).append(row)
    for scale, rows in by_scale.items():
        factor = 100.0 if scale == PERCENT else 1.0
        band = "" if margin is None else f"; band: up to ±{factor * margin:g}, which does not matter"
        unit = "percentage points" if scale == PERCENT else f"units of {scale}"
        yield ForestPanel(
            f"{pair.first} − {pair.second}",
            f"difference in {unit}; a verdict describes the first run{band}",
            tuple(_row(row, factor) for row in rows if math.isfinite(row.value)),
            None if margin is None else factor * margin,
        )


def _row(row: Difference, factor: float) -> ForestRow:
    low, high = (None, None) if row.interval is None else (factor * row.interval.low, factor * row.interval.high)
    metric = metric_text(row.metric, row.filter)
    name = metric if row.name == row.metric else f"{row.name}  {metric}"
    remark = "" if row.higher_is_better else " (lower is better)"
    words = row.shown_verdict if row.interval is not None else f"{row.shown_verdict} ({row.no_interval})"
    return ForestRow(name, factor * row.value, low, high, _LOOKS[row.verdict], words, row.pairing.paired, remark)


WIDTH = 120
_LEAST_NAME = 12
_LEAST_P = 0.0001
_MOST_LINES = 10
"""Up to this many rows have a line each. With more rows, only rows with absent documents have one."""
_MOST_NAMED = 3
_MOST_CELLS = 100
"""Rows of a breakdown that are printed. JSON and CSV have all of them."""


class Section(Struct, frozen=True):
    """A table with its heading and the lines below it."""

    heading: str
    columns: Sequence[Column]
    lines: Sequence[str]
    first: str = ""
    """A line above the table."""


def sections(comparison: Comparison) -> Iterator[Section]:
    """Yield the sections of a comparison: rows and breakdowns of each pair, then the ranks."""
    for pair in comparison.pairs:
        heading = f"{pair.first} (first) against {pair.second} (second)"
        yield Section(heading, _columns(pair.rows, "Task"), list(_lines(pair.rows)), pair.recipes)
        if pair.prompts:
            yield Section(f"{heading}, over prompts", _prompt_columns(pair.prompts), list(_prompt_lines(pair.prompts)))
        for name, cells in pair.cells.items():
            left = f"{len(cells) - _MOST_CELLS} more parts are in --json and --csv"
            more = [left] if len(cells) > _MOST_CELLS else []
            columns = _columns(cells[:_MOST_CELLS], name)
            few = sum(any(note.startswith("few documents") for note in cell.notes) for cell in cells)
            marked = [f"*: few documents ({few} of {len(cells)} parts)"] if few else []
            family = sum(cell.p is not None for one in comparison.pairs for cell in one.cells.get(name, ()))
            rest = f", not over all {len(pair.cells)}" if len(pair.cells) > 1 else ""
            alone = [f"p: corrected over this column{rest} ({family} test{'s' * (family != 1)})"]
            yield Section(f"{heading}, by {name}", columns, [*marked, *more, *alone])
    for name, ranks in comparison.ranks.items():
        yield Section(
            f"Ranks: {name} (what each may be, {1 - comparison.alpha:.0%} over all runs at once)",
            (
                Column("Run", tuple(rank.run for rank in ranks), is_text=True),
                Column("Score", tuple(f"{rank.score:.4g}" for rank in ranks)),
                Column("Rank", tuple(str(rank.rank) for rank in ranks)),
                Column("Best", tuple(str(rank.best) for rank in ranks)),
                Column("Worst", tuple(str(rank.worst) for rank in ranks)),
            ),
            (),
        )


def comparison_text(comparison: Comparison) -> str:
    """Format a comparison for a terminal of 120 columns; long names are cut in the middle."""
    parts = []
    for section in sections(comparison):
        table = markdown_table(_narrowed(section.columns)).rstrip("\n")
        first = [section.first, ""] if section.first else []
        parts.append("\n".join([section.heading, "", *first, table, *section.lines]))
    return "\n\n".join([*parts, "\n".join(closing_lines(comparison))])


def comparison_markdown(comparison: Comparison) -> str:
    """Format a comparison as Markdown. Texts of runs and data are escaped."""
    parts = ["# Comparison"]
    for section in sections(comparison):
        columns = [
            Column(column.heading, tuple(map(escaped, column.cells)), column.is_text) for column in section.columns
        ]
        parts += [f"## {escaped(section.heading)}", *([escaped(section.first)] if section.first else [])]
        parts.append(markdown_table(columns).rstrip("\n"))
        parts += ["\n".join(f"* {escaped(line)}" for line in section.lines)] if section.lines else []
    parts.append("\n".join(f"* {escaped(line)}" for line in closing_lines(comparison)))
    return "\n\n".join(parts) + "\n"


def comparison_latex(comparison: Comparison) -> str:
    """Format a comparison as LaTeX for the package booktabs: a ``table`` for each section, with its lines as notes.

    What the columns mean is in the caption of the first table; the notes of the comparison are below the last one.
    """
    closing = [latex_text(f"{line}.") for line in meaning_lines(comparison)]
    tables = list(sections(comparison))
    floats: list[str] = []
    for section in tables:
        columns = [column for column in section.columns if any(cell.strip() for cell in column.cells)]
        widths = [max(map(display_width, (column.heading, *column.cells))) + 2 for column in columns]
        first = [section.first] if section.first else []
        whole = [] if floats else closing
        caption = " ".join([f"{latex_text(section.heading)}.", *map(latex_text, first), *whole])
        notes = comparison.notes if section is tables[-1] else ()
        lines = list(map(latex_text, (*section.lines, *notes)))
        title = latex_text("".join(filter(str.isascii, section.heading)))
        floats.append(latex_float(latex_tabular(columns), title, caption, lines, sum(widths)))
    return latex_document("\n".join(floats))


def row_lines(row: Difference) -> Iterator[str]:
    """Yield lines about a row: its documents, what they can detect, and its value if absent scores were wrong."""
    counts = [f"{row.pairing.paired:,} documents", *_absences(row)]
    if row.changed is not None:
        counts.insert(1, f"first better on {row.changed[0]:,}, worse on {row.changed[1]:,}")
    if row.interval is not None and row.test not in ("", "gaffke") and row.p_list is None:
        detectable = difference_text(row.detectable, row).lstrip("+") if row.detectable is not None else "nothing"
        counts.append(f"smallest detectable difference (80 % power): {detectable}")
    if row.test:
        counts.append(" / ".join(filter(None, (row.test, row.interval.method if row.interval else ""))))
    yield f"{_named(row)}: {'; '.join(counts)}"
    if row.sensitivity is not None:
        left, wrong = (difference_text(value, row) for value in (row.value, row.sensitivity.difference))
        ends = [difference_text(end, row) for end in (row.sensitivity.low, row.sensitivity.high) if end is not None]
        between = f"; {ends[0]} to {ends[1]} whatever they would score" if len(ends) == 2 else ""
        found = f"documents without a score left out: {left}; counted wrong: {wrong} (n = {row.sensitivity.n:,})"
        yield f"  {found}{between}"
    yield from _reruns(row)


def _reruns(row: Difference) -> Iterator[str]:
    """Yield a line about how the difference varies if the runs are made again, if that is known."""
    found = row.reruns
    if found is None:
        return

    def size(value: float) -> str:
        return difference_text(value, row).lstrip("+")

    text = (
        f"  the same requests sent twice differ by SD {size(found.error)}, in 95 % by at most {size(found.half_width)}"
    )
    if found.half_width_high is not None:
        where = "beyond" if found.is_beyond else "within"
        text += f" (upper end {size(found.half_width_high)}): this difference is {where} rerun noise"
    yield text
    if found.interval is not None:
        low, high = (difference_text(end, row) for end in (found.interval.low, found.interval.high))
        yield f"  if both were run again on this list: {low} to {high}"
    else:
        yield f"  if both were run again on this list: no interval ({found.no_interval})"


def _absences(row: Difference) -> list[str]:
    pairing = row.pairing
    found = []
    for text, number in (("only first has", pairing.only_first), ("only second has", pairing.only_second)):
        found += [f"{text} {number:,}"] if number else []
    for text, (first, second) in (("unscored", pairing.unscored), ("failed", pairing.failed)):
        found += [f"{text}: {first:,} in first, {second:,} in second"] if first or second else []
    return found


def _lines(rows: Sequence[Difference]) -> Iterator[str]:
    """Yield the lines and notes below a table; with many rows, only lines of rows that lack documents."""
    shown = [row for row in rows if len(rows) <= _MOST_LINES or _absences(row)]
    for row in shown:
        yield from row_lines(row)
    names: dict[str, list[str]] = {}  # each note once, with the rows that it applies to
    for row in rows:
        for note in row.notes:
            names.setdefault(note, []).append(_named(row))
    for note, of in names.items():
        yield f"{some_of(of, _MOST_NAMED)}: {note}"
    if len(shown) < len(rows):
        yield f"{len(rows) - len(shown)} more rows: counts, tests and detectable differences are in --json and --csv"


def closing_lines(comparison: Comparison) -> Iterator[str]:
    """Yield lines about the meaning of the columns and about the whole comparison."""
    yield from meaning_lines(comparison)
    yield from comparison.notes


def meaning_lines(comparison: Comparison) -> Iterator[str]:
    """Yield lines about the meaning of the columns."""
    tests = sum(row.p is not None for pair in comparison.pairs for row in pair.rows)
    level = f"{100 * (1 - comparison.alpha):g} %"
    yield (
        f"difference: first - second, pp: percentage points, in brackets the {level} interval; "
        "verdict describes the first run"
    )
    has_least = any(_least(row) is not None for pair in comparison.pairs for row in pair.rows)
    least = "; n ≥: documents needed for 80 % power" if has_least else ""
    yield (
        f"p: two-sided, corrected over {tests} {'test' if tests == 1 else 'tests'} (Holm); verdicts at "
        f"{comparison.alpha:g}{least}"
    )
    if comparison.margin is not None:
        yield f"equivalent: the difference is shown to lie within ±{comparison.margin:g} (two one-sided tests)"


def _least(row: Difference) -> int | None:
    """Return the least number of documents that a row names with its verdict."""
    return row.needed if row.needed_least is None else row.needed_least


def _columns(rows: Sequence[Difference], heading: str) -> list[Column]:
    names = [row.name for row in rows]
    if any(row.cell for row in rows):
        marks = ["*" if any(note.startswith("few documents") for note in row.notes) else "" for row in rows]
        tasks = [f"{row.name}: " if len(set(names)) > 1 else "" for row in rows]
        names = [f"{task}{row.cell}{mark}" for task, row, mark in zip(tasks, rows, marks, strict=True)]
    metrics = [(metric_text(row.metric, row.filter), row) for row in rows]
    differences = []
    for row in rows:
        within = f"({row.no_interval or 'no interval'})"
        if row.interval is not None:
            ends = (row.interval.low, row.interval.high)
            texts = (f"{100 * end:+.2f}" if row.unit == "percent" else f"{end:+.4g}" for end in ends)
            within = f"[{', '.join(texts)}]"
        differences.append(f"{difference_text(row.value, row)} {within}")
    least = [_least(row) for row in rows]
    words = [row.shown_verdict for row in rows]
    verdicts = [text if n is None else f"{text} (n ≥ {n:,})" for text, n in zip(words, least, strict=True)]
    return [
        Column(heading, tuple(names), is_text=True),
        Column("Metric", tuple(f"{text} {'↑' if row.higher_is_better else '↓'}" for text, row in metrics), True),
        Column("First", tuple(_score(row.first, row) for row in rows), True),
        Column("Second", tuple(_score(row.second, row) for row in rows), True),
        Column("Difference", tuple(differences), True),
        Column("p (Holm)", tuple(p_text(row.p_holm) for row in rows), True),
        Column("N", tuple(f"{row.pairing.paired:,}" for row in rows), True),
        Column("Verdict", tuple(verdicts), True),
    ]


def _prompt_columns(rows: Sequence[PromptDifference]) -> list[Column]:
    def differences(row: PromptDifference, interval: Interval | None, reason: str) -> str:
        if interval is None:
            return reason or "no interval"
        ends = (
            f"{100 * end:+.2f}" if row.unit == "percent" else f"{end:+.4g}" for end in (interval.low, interval.high)
        )
        return f"[{', '.join(ends)}]"

    return [
        Column("Task", tuple(row.name for row in rows), is_text=True),
        Column("Metric", tuple(metric_text(row.metric, row.filter) for row in rows), True),
        Column("Difference", tuple(difference_text(row.value, row) for row in rows), True),
        Column("These prompts", tuple(differences(row, row.these, row.no_these) for row in rows), True),
        Column("Prompts like these", tuple(differences(row, row.like_these, row.no_like_these) for row in rows), True),
        Column("p", tuple(p_text(row.p_like_these) for row in rows), True),
        Column("N", tuple(f"{row.n:,}" for row in rows), True),
    ]


def _prompt_lines(rows: Sequence[PromptDifference]) -> Iterator[str]:
    for row in rows:
        each = ", ".join(f"{name} {difference_text(value, row)}" for name, value in row.prompts.items())
        yield f"{row.name} {metric_text(row.metric, row.filter)}: {row.ranking} ({each})"
        if row.missing:
            yield f"  {row.missing:,} documents without a number under one of the prompts are left out"
        if not row.is_mean:
            yield "  means over documents, not the task's own number"
    yield "p: of the mean over prompts like these, of each row alone"


def _named(row: Difference) -> str:
    return f"{row.name} {metric_text(row.metric, row.filter)}"


def _score(value: float, row: Difference) -> str:
    return f"{100 * value:.2f}%" if row.unit == "percent" else f"{value:.4g}"


def difference_text(value: float, row: Difference | PromptDifference) -> str:
    """Format a difference with its sign and unit."""
    return f"{100 * value:+.2f} pp" if row.unit == "percent" else f"{value:+.4g}"


def p_text(p: float | None) -> str:
    """Format a p-value; very small ones as ``<0.0001``."""
    if p is None:
        return ""
    return f"{p:.4f}" if p >= _LEAST_P else f"<{_LEAST_P}"


def _narrowed(columns: Sequence[Column]) -> list[Column]:
    """Cut names so that the table fits a terminal, as far as different names stay different."""
    clean = [Column(c.heading, tuple(" ".join(cell.split()) for cell in c.cells), c.is_text) for c in columns]
    widths = [max(3, *(display_width(text) for text in (c.heading, *c.cells))) for c in clean]
    spare = WIDTH - sum(widths) - len(widths) - 1
    for number in (0, 1):
        if spare < 0:
            width = max(_LEAST_NAME, widths[number] + spare)
            while len({_cut(cell, width) for cell in clean[number].cells}) < len(set(clean[number].cells)):
                width += 1
            spare += widths[number] - width
            cells = tuple(_cut(cell, width) for cell in clean[number].cells)
            clean[number] = Column(clean[number].heading, cells, clean[number].is_text)
    return clean


def _cut(text: str, width: int) -> str:
    if display_width(text) <= width:
        return text
    left = text[: width // 4]
    right = text[len(text) - (width - len(left) - 1) :]
    while display_width(left) + display_width(right) + 1 > width:
        left, right = left[:-1], right[1:]
    return f"{left}…{right}"
