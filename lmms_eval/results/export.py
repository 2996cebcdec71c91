"""Export of samples to one file: Parquet, CSV, JSON lines or an Excel workbook. Samples are streamed."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from lmms_eval.errors import LmmsEvalError, UsageError
from lmms_eval.results.columns import Columns, batches, row_of
from lmms_eval.results.sample import Sample, json_cell
from lmms_eval.storage.atomic import replacing
from lmms_eval.utils.terminal import no_formula, printable

MOST_ROWS = 1_048_576
LONGEST_CELL = 32_767
"""Limits of a workbook: rows of a sheet including the heading, and characters of a cell."""


class Exported:
    """Writer of samples to a file, with counts of what it wrote."""

    def __init__(self, samples: Callable[[], Iterable[Sample]], table: Columns) -> None:
        self.samples, self.table = samples, table
        self.rows = 0
        self.rows_left_out = 0
        """Rows beyond the limit of a workbook's sheet."""
        self.cells_cut = 0
        """Texts cut to the limit of a workbook's cell."""

    @property
    def columns(self) -> int:
        return len(self.table.kinds)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about rows and texts that were cut."""
        left = f"{self.rows_left_out} rows are left out: a sheet holds {MOST_ROWS - 1}; parquet and csv hold all"
        cut = f"{self.cells_cut} texts are cut to the {LONGEST_CELL} characters of a cell; parquet and csv hold all"
        return (*([left] if self.rows_left_out else []), *([cut] if self.cells_cut else []))

    def plain_rows(self) -> Iterator[Mapping[str, Any]]:
        for sample in self.samples():
            self.rows += 1
            yield self.table.plain(row_of(sample))

    def parquet(self, file: IO[bytes]) -> None:
        from pyarrow import parquet

        with parquet.ParquetWriter(file, self.table.schema(), compression="zstd") as writer:
            for batch in batches(self.samples(), self.table):
                writer.write_batch(batch)
                self.rows += batch.num_rows

    def csv(self, file: IO[bytes]) -> None:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=False)
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([no_formula(name) for name in self.table.kinds])
        for row in self.plain_rows():
            writer.writerow([_cell(value) for value in row.values()])
        text.flush()
        text.detach()

    def jsonl(self, file: IO[bytes]) -> None:
        for sample in self.samples():
            row = row_of(sample)
            kept = {name: row.get(name) for name in self.table.kinds}
            file.write(json_cell(kept).encode("utf-8", "replace") + b"\n")
            self.rows += 1

    def xlsx(self, file: IO[bytes]) -> None:
        from openpyxl import Workbook

        book = Workbook(write_only=True)
        sheet = book.create_sheet("samples")
        sheet.append([self._short(no_formula(name)) for name in self.table.kinds])
        for row in self.plain_rows():
            if self.rows >= MOST_ROWS:
                self.rows -= 1
                self.rows_left_out += 1
                continue
            sheet.append([self._short(_cell(value)) for value in row.values()])
        book.save(file)

    def _short(self, value: Any) -> Any:
        """Cut a text to the limit of a cell and escape control characters, which a workbook does not allow."""
        if not isinstance(value, str):
            return value
        text = printable(value)
        self.cells_cut += len(text) > LONGEST_CELL
        return text[:LONGEST_CELL]


FORMS: Mapping[str, Callable[[Exported, IO[bytes]], None]] = {
    "parquet": Exported.parquet,
    "csv": Exported.csv,
    "jsonl": Exported.jsonl,
    "xlsx": Exported.xlsx,
}


def export(samples: Callable[[], Iterable[Sample]], form: str, path: Path) -> Exported:
    """Write samples as a table with typed columns (``docs/results.md``).

    The file is replaced atomically. Texts are escaped so that a spreadsheet does not run them as formulas.

    Args:
        samples: iterates over the samples from the beginning; called twice.
        form: one of ``FORMS``.
        path: the file.

    Raises:
        DataError: a sample cannot be read.
        LmmsEvalError: the file cannot be written.
        UsageError: the form is ``xlsx`` and openpyxl is not installed.
    """
    if form == "xlsx" and find_spec("openpyxl") is None:
        raise UsageError("xlsx needs the package openpyxl: pip install 'lmms_eval[xlsx]'; csv and parquet need nothing")
    writer = Exported(samples, Columns.of(samples()))
    try:
        with replacing(path) as file:
            FORMS[form](writer, file)
    except OSError as error:
        raise LmmsEvalError(f"cannot write {path}: {error.strerror or error}") from error
    return writer


def _cell(value: Any) -> Any:
    """Return the value of a cell: lists as JSON, texts that cannot be formulas."""
    if isinstance(value, list):
        return json_cell(value)
    return no_formula(value) if isinstance(value, str) else value
