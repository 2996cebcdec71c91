"""The live view on a terminal (textual): the runs of a folder and their numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Header, Static

from lmms_eval.results.facts import count_label, is_count
from lmms_eval.utils.terminal import printable
from lmms_eval.viewer.live.watch import Watch

RUN_COLUMNS = ("Run", "State", "Done", "Docs/s", "Left", "Score", "Failed", "In flight", "Progress")
NUMBER_COLUMNS = ("Task", "Metric", "Filter", "Value", "95% interval", "n", "Done", "Failed", "Progress")
BAR = 12
"""Characters of a bar."""
_STYLES = {
    "complete": "green", "running": "cyan", "withheld": "yellow", "interrupted": "yellow", "stopped early": "yellow",
    "failed": "red",
}  # fmt: skip
"""Colours of states; textual leaves them out with ``NO_COLOR``."""
MOST_WARNINGS, MOST_REASONS = 4, 3
_MOST_TEXT = 160

Plain = Mapping[str, Any]


def run_cells(entry: Plain) -> tuple[str, ...]:
    """Make the row of a run: its speed while it continues, its outcome when it has ended."""
    live = entry.get("live") or {}
    running = live if live.get("is_going") else {}
    outcomes = [task["outcomes"] for task in entry["tasks"]]
    done = live.get(
        "done", sum(one.get("scored", 0) + one.get("unscored", 0) + one.get("failed", 0) for one in outcomes)
    )
    requested = live.get("requested", sum(one.get("requested", 0) for one in outcomes))
    failed = live.get("failed", sum(one.get("failed", 0) for one in outcomes))
    score = live.get("score")
    if score is None:
        rows: Sequence[Plain] = [row for row in entry["rows"] if not is_count(row["metric"], row.get("value"))]
        score = rows[0] if len(rows) == 1 else {}
    interval = _interval(score)
    return (
        one_line(entry["name"]),
        one_line(entry["state"]),
        f"{done:,}/{requested:,}",
        _number(running.get("rate") or running.get("rate_overall"), 1),
        duration(running.get("seconds_left")),
        " ".join(part for part in (_number(score.get("value"), 4), interval) if part),
        f"{failed:,}",
        "" if running.get("in_flight") is None else f"{running['in_flight']:,}",
        bar(done, requested),
    )


def number_cells(entry: Plain) -> list[tuple[str, ...]]:
    """Make a row for each score of a run. A task without scores has one row with its progress."""
    rows: list[tuple[str, ...]] = []
    tasks = {task["name"]: task["outcomes"] for task in entry["tasks"]}
    planned = {task["name"]: task for task in (entry.get("live") or {}).get("tasks", [])}
    for name in dict.fromkeys([*planned, *tasks]):
        progress = _progress(tasks.get(name), planned.get(name, {}))
        numbers = [
            row for row in entry["rows"] if row["task"] == name and not is_count(row["metric"], row.get("value"))
        ]
        rows += [(*_number_row(row), *progress) for row in numbers]
        if not numbers:
            rows.append((one_line(name), "", "", "", "", "", *progress))
    return rows


def bar(done: float, whole: float) -> str:
    """Draw what is done as a bar of blocks; empty if all is done, or the whole is not known."""
    if whole <= 0 or done >= whole:
        return ""
    full = int(BAR * max(done / whole, 0.0))
    return "█" * full + "░" * (BAR - full)


def count_lines(entry: Plain) -> list[str]:
    """Return a line for each kind of count among the numbers: ``scored documents: 59``."""
    found: dict[str, int] = {}
    for row in entry["rows"]:
        if is_count(row["metric"], row.get("value")) and isinstance(row.get("n"), int):
            label = count_label(row["metric"])
            found[label] = found.get(label, 0) + row["n"]
    return [f"{label}: {number:,}" for label, number in found.items()]


def warning_lines(entry: Plain) -> list[str]:
    """Return a line for each cause of warnings, with the tasks that share it."""
    causes: dict[str, list[str]] = {}
    for one in entry["warnings"]:
        causes.setdefault(one_line(one["text"]), []).append(one_line(one.get("task") or ""))
    lines = []
    for text, tasks in causes.items():
        where = f"{tasks[0]}: " if len(tasks) == 1 and tasks[0] else ""
        lines.append(f"! {where}{text}" + (f" ({len(tasks)} tasks)" if len(tasks) > 1 else ""))
    more = len(lines) - MOST_WARNINGS
    return [*lines[:MOST_WARNINGS], *([f"! and {more} more warnings"] if more > 0 else [])]


def remarks(entry: Plain) -> list[str]:
    """Return remarks on a run: warnings, the most frequent reasons of failures, counts, tokens, memory."""
    live = entry.get("live") or {}
    found = warning_lines(entry)
    found += [f"{count:,} documents: {one_line(reason)}" for reason, count in live.get("reasons", [])[:MOST_REASONS]]
    found += count_lines(entry)
    if live:
        tokens = f"tokens: {live['tokens_in']:,} in, {live['tokens_out']:,} out"
        rate = live.get("token_rate")
        found.append(tokens if rate is None else f"{tokens}, {rate:,.0f} a second")
    memory = sum(one["memory"] for one in live.get("processes", []) if one.get("memory"))
    if memory:
        found.append(f"processes: {len(live['processes'])}, memory {memory / 1e9:.1f} GB")
    found += [
        f"GPU {one_line(gpu['name'])}: {gpu['busy']} % busy, {gpu['used'] / 1e9:.1f} of {gpu['total'] / 1e9:.1f} GB"
        for gpu in live.get("gpus", [])
    ]
    return found


def duration(seconds: float | None) -> str:
    """Format seconds as hours, minutes and seconds, or as an empty text if they are not known."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def one_line(text: object) -> str:
    """Put a text on one line, without control characters, and shorten it."""
    shown = " ".join(printable(str(text)).split())
    return shown if len(shown) <= _MOST_TEXT else f"{shown[: _MOST_TEXT - 3]}..."


def _number_row(row: Plain) -> tuple[str, ...]:
    value = _number(row.get("value"), 4) or one_line(row.get("withheld") or "")
    fixed = (one_line(row["task"]), one_line(row["metric"]), one_line(row["filter"]))
    return (*fixed, value, _interval(row), "" if row.get("n") is None else f"{row['n']:,}")


def _progress(outcomes: Plain | None, planned: Plain) -> tuple[str, str, str]:
    counts = outcomes or {}
    done = sum(counts.get(name, 0) for name in ("scored", "unscored", "failed"))
    requested = counts.get("requested", planned.get("requested", 0))
    return f"{done:,}/{requested:,}", f"{counts.get('failed', 0):,}", bar(done, requested)


def _interval(row: Plain) -> str:
    low, high = row.get("low"), row.get("high")
    return "" if low is None or high is None else f"[{low:.4f}, {high:.4f}]"


def _number(value: Any, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


LOOK_S = 1.0
WIDTHS = {"Score": 23, "95% interval": 16, "Left": 10, "Done": 15}
"""Widths of columns that are blank at first. The other columns grow with their contents."""


class RunsScreen(App[None]):
    """A screen with two tables: the runs, and the numbers of the selected run. Ctrl-C calls ``interrupt`` or closes it.

    If this command has started a run, ``log`` returns the last lines of its standard error, and the screen closes when
    ``has_ended`` is true.
    """

    TITLE = "lmms-eval"
    CSS = """
    #runs { height: auto; max-height: 40%; }
    #numbers { height: 1fr; }
    #remarks, #log { height: auto; max-height: 8; padding: 0 1; }
    #log { color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "leave"),
        Binding("ctrl+c", "interrupt", "end", priority=True),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self,
        watch: Watch,
        log: Callable[[], Sequence[str]] = lambda: (),
        has_ended: Callable[[], bool] = lambda: False,
        interrupt: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        self._watch, self._log_lines, self._has_ended, self._interrupt = watch, log, has_ended, interrupt
        self._entries: list[Mapping[str, Any]] = []

    def compose(self) -> ComposeResult:
        yield Header()
        yield DataTable(id="runs", cursor_type="row", zebra_stripes=True)
        yield DataTable(id="numbers", cursor_type="none")
        yield Static(id="remarks", markup=False)
        yield Static(id="log", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        self.sub_title = one_line(self._watch.folder)
        for table, columns in (("#runs", RUN_COLUMNS), ("#numbers", NUMBER_COLUMNS)):
            for column in columns:
                self.query_one(table, DataTable).add_column(column, width=WIDTHS.get(column))
        self.refresh_runs()
        self.set_interval(LOOK_S, self.refresh_runs)

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        if event.data_table.id == "runs":
            self._show_chosen()

    def action_interrupt(self) -> None:
        """Interrupt the run, or leave the screen if this command has not started one."""
        if self._interrupt is None:
            self.exit()
        else:
            self._interrupt()

    def refresh_runs(self) -> None:
        """Show the present state."""
        if self._has_ended():
            self.exit()
            return
        content = json.loads(self._watch.piece("runs"))
        self._entries = sorted(content["runs"], key=lambda entry: not (entry.get("live") or {}).get("is_going"))
        _fill(self.query_one("#runs", DataTable), [run_cells(entry) for entry in self._entries])
        self._show_chosen()
        lines = [*map(one_line, content["view"]["problems"]), *map(one_line, self._log_lines())]
        self.query_one("#log", Static).update(Text("\n".join(lines)))

    def _show_chosen(self) -> None:
        place = self.query_one("#runs", DataTable).cursor_row
        entry = self._entries[place] if 0 <= place < len(self._entries) else None
        _fill(self.query_one("#numbers", DataTable), [] if entry is None else number_cells(entry))
        lines = ["no run has begun here yet"] if entry is None else remarks(entry)
        self.query_one("#remarks", Static).update(Text("\n".join(lines)))


def _styled(cell: str) -> Text:
    """Return a cell as text: states and reasons of missing scores in their colours, never markup."""
    if cell and not cell.strip("█░"):
        return Text(cell, style="cyan")
    return Text(cell, style=next((style for word, style in _STYLES.items() if f"{cell} ".startswith(f"{word} ")), ""))


def _fill(table: DataTable[Any], rows: Sequence[Sequence[str]]) -> None:
    """Show rows. Only changed cells are updated, so that cursor and scroll position stay."""
    columns = [*table.columns]
    for place, cells in enumerate(rows):
        if place >= table.row_count:
            table.add_row(*map(_styled, cells))
            continue
        row = table.ordered_rows[place].key
        for column, cell in zip(columns, cells, strict=True):
            if str(table.get_cell(row, column)) != cell:
                table.update_cell(row, column, _styled(cell), update_width=True)
    for gone in [one.key for one in table.ordered_rows[len(rows) :]]:
        table.remove_row(gone)
