"""The quick sample: numbers whose own rule needs the whole benchmark, as shares of the documents asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.outcome import Estimate
from lmms_eval.tasks._task_utils.estimates import mean


def share(results: Sequence[Mapping[str, Any]]) -> Estimate:
    """Return the share of right answers; OCRBench's own number is divided by 1,000 whatever was asked."""
    return mean([result["score"] for result in results])
