"""P-values adjusted for the number of tests of a family. ``None`` (no test) stays ``None`` and is not counted."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Sequence
from typing import Any

from lmms_eval.errors import UsageError


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """P-values by which rejecting at α keeps the chance of any false rejection at α.

    Holm 1979, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6.

    Raises:
        UsageError: a p-value does not lie between 0 and 1.
    """
    from statsmodels.stats.multitest import multipletests

    gc.freeze()  # the library collects garbage, which takes half a second beside runs of many documents
    try:
        return _adjusted(ps, lambda known: multipletests(known, method="holm")[1])
    finally:
        gc.unfreeze()


def benjamini_hochberg(ps: Sequence[float | None]) -> list[float | None]:
    """P-values by which rejecting at α keeps the expected share of false ones among the rejections at α.

    Benjamini and Hochberg 1995, "Controlling the false discovery rate", Journal of the Royal Statistical Society B 57;
    for tests that are independent or positively dependent.

    Raises:
        UsageError: a p-value does not lie between 0 and 1.
    """
    from scipy.stats import false_discovery_control

    return _adjusted(ps, lambda known: false_discovery_control(known, method="bh"))


def _adjusted(ps: Sequence[float | None], adjust: Callable[[list[float]], Any]) -> list[float | None]:
    known = [p for p in ps if p is not None]
    wrong = [p for p in known if math.isnan(p) or not 0 <= p <= 1]
    if wrong:
        raise UsageError(f"adjusted p-values: {wrong[0]} is no p-value; give numbers from 0 to 1, or None for no test")
    adjusted = iter(adjust(known) if known else ())
    return [None if p is None else float(next(adjusted)) for p in ps]
