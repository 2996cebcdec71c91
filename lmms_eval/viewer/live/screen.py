"""The runs of a folder on a terminal (textual): the numbers of the live view, without a browser."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Header, Static

from lmms_eval.viewer.live.cells import NUMBER_COLUMNS, RUN_COLUMNS, number_cells, one_line, remarks, run_cells
from lmms_eval.viewer.live.watch import Watch

LOOK_S = 1.0
WIDTHS = {"Score": 23, "95% interval": 16, "Left": 10, "Done": 15}
"""Columns whose cells are blank at first: the others grow with what they hold."""


class RunsScreen(App[None]):
    """Screen of two tables: the runs, and the numbers of the one that is chosen.

    Args:
        watch: reader of the folder.
        log: last lines of what the run writes to standard error, where this command has started one.
        has_ended: tells that this run is over: the screen is left then.
        interrupt: what Ctrl-C does; without it the screen is left.
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
        """End the run in order, or leave the screen where none was started."""
        if self._interrupt is None:
            self.exit()
        else:
            self._interrupt()

    def refresh_runs(self) -> None:
        """Show what is known by now."""
        if self._has_ended():
            self.exit()
            return
        told = json.loads(self._watch.piece("runs"))
        self._entries = sorted(told["runs"], key=lambda entry: not (entry.get("live") or {}).get("is_going"))
        _fill(self.query_one("#runs", DataTable), [run_cells(entry) for entry in self._entries])
        self._show_chosen()
        lines = [*map(one_line, told["view"]["problems"]), *map(one_line, self._log_lines())]
        self.query_one("#log", Static).update(Text("\n".join(lines)))

    def _show_chosen(self) -> None:
        place = self.query_one("#runs", DataTable).cursor_row
        entry = self._entries[place] if 0 <= place < len(self._entries) else None
        _fill(self.query_one("#numbers", DataTable), [] if entry is None else number_cells(entry))
        lines = ["no run has begun here yet"] if entry is None else remarks(entry)
        self.query_one("#remarks", Static).update(Text("\n".join(lines)))


def _fill(table: DataTable[Any], rows: Sequence[Sequence[str]]) -> None:
    """Show these rows; cells that stay are left as they are, so that cursor and scrolling stay too."""
    columns = [*table.columns]
    for place, cells in enumerate(rows):
        if place >= table.row_count:
            table.add_row(*map(Text, cells))
            continue
        row = table.ordered_rows[place].key
        for column, cell in zip(columns, cells, strict=True):
            if str(table.get_cell(row, column)) != cell:
                table.update_cell(row, column, Text(cell), update_width=True)
    for gone in [one.key for one in table.ordered_rows[len(rows) :]]:
        table.remove_row(gone)
