"""Strata of a task: the score is the mean of the strata's means. A column names the stratum of each document."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.errors import DataError, TaskError
from lmms_eval.tasks.data import Documents


def stated_strata(entry: Mapping[str, Any], registered: str | None, where: str) -> tuple[str, float]:
    """Read the key ``strata`` of an entry of ``metric_list``: a column, or ``{column: ..., scale: ...}``.

    The scale is a factor of the mean: 100 gives a percentage for documents that count 0 or 1. Without the key, the
    column is empty and the scale 0.

    Raises:
        TaskError: it is neither, or the aggregation is a registered one, which does not support strata.
    """
    stated = entry.get("strata")
    if stated is None:
        return "", 0.0
    said = f"{where}: key 'metric_list', strata of metric {entry['metric']}"
    if registered is not None:
        raise TaskError(
            f"{said}: aggregation {registered!r} is no mean over strata; give a function that takes the mean over the "
            "strata of their documents' means"
        )
    given = {"column": stated} if isinstance(stated, str) else stated
    if isinstance(given, Mapping) and {*given} <= {"column", "scale"}:
        column, scale = given.get("column"), given.get("scale", 1.0)
        is_scale = isinstance(scale, int | float) and not isinstance(scale, bool) and 0 < scale < math.inf
        if column and isinstance(column, str) and is_scale:
            return column, float(scale)
    raise TaskError(f"{said}: give the name of a column, or {{column: NAME, scale: NUMBER}}, not {stated!r}")


def common_column(columns: Sequence[str], where: str) -> str:
    """Return the column of strata that the metrics of a task share; empty if no metric names one.

    Raises:
        TaskError: they name several columns; documents are ordered by one column.
    """
    named = sorted({*columns} - {""})
    if len(named) > 1:
        raise TaskError(f"{where}: key 'metric_list': strata by {' and '.join(named)}; give one column for all metrics")
    return named[0] if named else ""


def strata_of(documents: Documents, column: str, doc_ids: Sequence[int], where: str) -> list[str] | None:
    """Return the stratum of each document; ``None`` without a column.

    Raises:
        DataError: the data has no such column of text.
    """
    if not column:
        return None
    if column not in documents.text_columns:
        known = ", ".join(documents.text_columns)
        raise DataError(f"{where}: key 'metric_list': strata by {column!r}: {documents.source.where} has only {known}")
    return [str(name) for name in documents.source.cells(column, doc_ids).to_pylist()]
