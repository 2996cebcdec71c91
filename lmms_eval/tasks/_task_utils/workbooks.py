"""Writes workbooks (``.xlsx``) with openpyxl."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from lmms_eval.errors import UsageError


def workbook_library() -> ModuleType:
    """Return openpyxl.

    Raises:
        UsageError: it is not installed.
    """
    try:
        return importlib.import_module("openpyxl")
    except ImportError:
        raise UsageError('workbooks (.xlsx) need openpyxl: pip install "lmms_eval[xlsx]"') from None


def write_rows(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write a workbook of one sheet whose columns are the keys of the first row.

    Characters that a sheet cannot hold (control characters) are left out.

    Raises:
        UsageError: openpyxl is not installed.
        OSError: the file cannot be written.
    """
    openpyxl = workbook_library()
    illegal = importlib.import_module("openpyxl.cell.cell").ILLEGAL_CHARACTERS_RE
    columns = list(rows[0]) if rows else []
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("Sheet1")
    sheet.append(columns)
    for row in rows:
        values = (row.get(column) for column in columns)
        sheet.append([illegal.sub("", value) if isinstance(value, str) else value for value in values])
    book.save(path)
