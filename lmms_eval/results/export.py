"""Samples of a run as one file: Parquet, CSV, JSON lines or an Excel workbook, streamed."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from lmms_eval.errors import LmmsEvalError, UsageError
from lmms_eval.results.columns import Columns, batches, row_of
from lmms_eval.results.sample import Sample, json_cell
from lmms_eval.storage.atomic import replacing
from lmms_eval.utils.terminal import no_formula, printable

MOST_ROWS = 1_048_576
LONGEST_CELL = 32_767
"""What a workbook holds: rows of a sheet with the heading, characters of a cell."""


@dataclass(slots=True)
class Exported:
    """The content of a file that was written."""

    rows: int = 0
    columns: int = 0
    rows_left_out: int = 0
    """Of a workbook: rows beyond those that a sheet holds."""
    cells_cut: int = 0
    """Of a workbook: texts longer than a cell holds."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about what was cut."""
        left = f"{self.rows_left_out} rows are left out: a sheet holds {MOST_ROWS - 1}; parquet and csv hold all"
        cut = f"{self.cells_cut} texts are cut to the {LONGEST_CELL} characters of a cell; parquet and csv hold all"
        return (*([left] if self.rows_left_out else []), *([cut] if self.cells_cut else []))


@dataclass(frozen=True, slots=True)
class _Writer:
    samples: Callable[[], Iterable[Sample]]
    columns: Columns
    told: Exported = field(default_factory=Exported)

    def rows(self) -> Iterator[Mapping[str, Any]]:
        for sample in self.samples():
            self.told.rows += 1
            yield self.columns.plain(row_of(sample))

    def parquet(self, file: IO[bytes]) -> None:
        from pyarrow import parquet

        with parquet.ParquetWriter(file, self.columns.schema(), compression="zstd") as writer:
            for batch in batches(self.samples(), self.columns):
                writer.write_batch(batch)
                self.told.rows += batch.num_rows

    def csv(self, file: IO[bytes]) -> None:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=False)
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([no_formula(name) for name in self.columns.kinds])
        for row in self.rows():
            writer.writerow([_cell(value) for value in row.values()])
        text.flush()
        text.detach()

    def jsonl(self, file: IO[bytes]) -> None:
        for sample in self.samples():
            row = row_of(sample)
            kept = {name: row.get(name) for name in self.columns.kinds}
            file.write(json_cell(kept).encode("utf-8", "replace") + b"\n")
            self.told.rows += 1

    def xlsx(self, file: IO[bytes]) -> None:
        from openpyxl import Workbook

        book = Workbook(write_only=True)
        sheet = book.create_sheet("samples")
        sheet.append([self._short(no_formula(name)) for name in self.columns.kinds])
        for row in self.rows():
            if self.told.rows >= MOST_ROWS:
                self.told.rows -= 1
                self.told.rows_left_out += 1
                continue
            sheet.append([self._short(_cell(value)) for value in row.values()])
        book.save(file)

    def _short(self, value: Any) -> Any:
        """Cut a text to what a cell holds; control characters, which a workbook cannot hold, are shown."""
        if not isinstance(value, str):
            return value
        text = printable(value)
        self.told.cells_cut += len(text) > LONGEST_CELL
        return text[:LONGEST_CELL]


FORMS: Mapping[str, Callable[[_Writer, IO[bytes]], None]] = {
    "parquet": _Writer.parquet,
    "csv": _Writer.csv,
    "jsonl": _Writer.jsonl,
    "xlsx": _Writer.xlsx,
}


def export(samples: Callable[[], Iterable[Sample]], form: str, path: Path) -> Exported:
    """Write samples as a table with typed columns (``docs/results.md``), as a whole; texts can be no formulas.

    Args:
        samples: goes through the samples from the first one on; called twice.
        form: one of ``FORMS``.
        path: the file.

    Raises:
        DataError: a sample cannot be read.
        LmmsEvalError: the file cannot be written.
        UsageError: the package that writes workbooks is absent.
    """
    if form == "xlsx":
        _need_openpyxl()
    writer = _Writer(samples, Columns.of(samples()))
    writer.told.columns = len(writer.columns.kinds)
    try:
        with replacing(path) as file:
            FORMS[form](writer, file)
    except OSError as error:
        raise LmmsEvalError(f"cannot write {path}: {error.strerror or error}") from error
    return writer.told


def _need_openpyxl() -> None:
    from importlib.util import find_spec

    if find_spec("openpyxl") is None:
        raise UsageError("xlsx needs the package openpyxl: pip install 'lmms_eval[xlsx]'; csv and parquet need nothing")


def _cell(value: Any) -> Any:
    """A value as a cell: lists as JSON; texts that are no formulas."""
    if isinstance(value, list):
        return json_cell(value)
    return no_formula(value) if isinstance(value, str) else value
