"""A comparison as files: JSON, CSV and the lines of flips."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

import orjson

from lmms_eval.compare.flips import Flip
from lmms_eval.compare.verdicts import Comparison, Difference, PairComparison
from lmms_eval.utils.spreadsheet import no_formula


def comparison_json(comparison: Comparison) -> str:
    """Write all of a comparison as JSON; numbers that are none or infinite are ``null``."""
    return json.dumps(_plain(asdict(comparison)), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def comparison_csv(comparison: Comparison) -> str:
    """Write a line for each row and cell, numbers in the units of the scores; texts can be no formulas."""
    text = io.StringIO()
    lines = [_line(pair, row, by) for pair in comparison.pairs for by, row in _rows(pair)]
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def flips_json(flips: Iterable[Flip]) -> Iterator[str]:
    """Write flips as lines of JSON; numbers that are none or infinite are ``null``."""
    return map(_flip_line, flips)


def _flip_line(flip: Flip) -> str:
    try:
        return orjson.dumps(flip, option=orjson.OPT_APPEND_NEWLINE).decode("utf-8")
    except TypeError:  # a text with half a surrogate pair
        return json.dumps(_plain(asdict(flip)), ensure_ascii=False, allow_nan=False) + "\n"


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
        "p": row.p,
        "p_holm": row.p_holm,
        "p_bh": row.p_bh,
        "test": row.test,
        "verdict": row.verdict,
        "detectable": row.detectable,
        "needed": row.needed,
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
        "notes": "; ".join(row.notes),
    }
    return {key: _cell(value) for key, value in found.items()}


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return no_formula(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
