"""The parts of the documents of runs against each other: the rows of ``lmms-eval compare --by COLUMN``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from lmms_eval.compare.matching import MatchedPair
from lmms_eval.compare.options import CompareOptions
from lmms_eval.compare.parts import compare_parts, dividing_columns
from lmms_eval.errors import UsageError
from lmms_eval.results.cells import MOST_COLUMNS
from lmms_eval.viewer.chunks import Chunks

MOST_PARTS = 1_000
"""Rows of all columns and pairs; columns with which they would be more are left to the command."""


def write_parts(
    chunks: Chunks,
    pairs: Sequence[MatchedPair],
    numbers: Mapping[str, int],
    options: CompareOptions,
    allowed: Collection[str] | None,
) -> list[dict[str, Any]]:
    """Write the pieces ``parts-A-B-N`` of each pair of runs and column with few values.

    Args:
        chunks: the place for them.
        pairs: what is compared.
        numbers: those of the runs in the report, by name.
        options: the rules of the comparison.
        allowed: columns that may be told; ``None``: all.

    Returns:
        An entry for each column N: its name, and the number of rows over all pairs or the reason why there are none.
    """
    found: list[dict[str, Any]] = []
    left = MOST_PARTS
    for column, most in dividing_columns(pairs).items():
        if len(found) == MOST_COLUMNS or (allowed is not None and column not in allowed):
            continue
        entry: dict[str, Any] = {"column": column, "rows": 0, "reason": ""}
        try:
            rows = compare_parts(pairs, column, options) if most <= left else []
        except UsageError:  # no document of its tasks has both scores
            continue
        for pair, of_pair in zip(pairs, rows, strict=bool(rows)):
            name = f"parts-{numbers[pair.first.name]}-{numbers[pair.second.name]}-{len(found)}"
            chunks.write(name, [asdict(row) for row in of_pair])
            entry["rows"] += len(of_pair)
        if not rows:
            entry["reason"] = f"too many parts for a report ({most:,}): lmms-eval compare --by {column} tells them"
        left -= entry["rows"]
        found.append(entry)
    return found
