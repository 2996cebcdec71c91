"""The 63 metrics of the workbook, each under one key: spellings, unit, direction, range, mapping.

The table does not define how a metric is computed.
"""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct, convert

from lmms_eval.errors import UnknownNameError
from lmms_eval.tasks.general_bench.facts import read_table

Unit = Literal["percent", "fraction", "raw"]
Rule = Literal["", "inverse", "tanh", "complement", "symmetric", "opinion"]
"""The rule that maps a value to a score from 0 to 100 (``levels.formulas``). If empty, the value is such a score."""


class Metric(Struct, frozen=True):
    """A canonical metric."""

    key: str
    title: str
    spellings: tuple[str, ...]
    """Spellings of the workbook first, then others in use."""
    unit: Unit
    """Unit of the value in a result table."""
    higher_is_better: bool
    low: float
    """Least possible value, or minus infinity."""
    high: float
    mapping: Rule
    constant: float
    """Constant T of the mapping, or 0."""


@functools.cache
def metrics() -> Mapping[str, Metric]:
    """Return all metrics by key."""
    found: dict[str, Metric] = {}
    for line in read_table("metrics.tsv"):
        values = {
            **line,
            "spellings": line["spellings"].split("; "),
            "higher_is_better": line["direction"] == "higher",
            "low": float(line["low"] or -math.inf),
            "high": float(line["high"] or math.inf),
            "constant": float(line["constant"] or 0),
        }
        found[line["key"]] = convert(values, Metric, strict=False)
    return MappingProxyType(found)


@functools.cache
def _spellings() -> Mapping[str, Metric]:
    found: dict[str, Metric] = {}
    for metric in metrics().values():
        for spelling in (metric.key, *metric.spellings):
            found.setdefault(fold_metric(spelling), metric)
    return MappingProxyType(found)


@functools.cache
def fold_metric(spelling: str) -> str:
    """Return a spelling without case, spaces, hyphens, ``_``, ``@`` and explanations in brackets."""
    normal = unicodedata.normalize("NFKC", spelling).casefold()
    return re.sub(r"\([^)]*\)|[\s_@-]", "", normal)


def find_metric(spelling: str) -> Metric:
    """Find the metric of a spelling. Raises ``UnknownNameError``, with the nearest spellings, if no metric has it."""
    metric = _spellings().get(fold_metric(spelling))
    if metric is None:
        known = [one for metric in metrics().values() for one in (metric.key, *metric.spellings)]
        raise UnknownNameError("metric", spelling, known)
    return metric
