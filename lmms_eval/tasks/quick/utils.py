"""The quick sample: benchmarks with an aggregation of their own give plain scores, whose mean has a known interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.tasks.muirbench import utils as muirbench
from lmms_eval.tasks.ocrbench import utils as ocrbench
from lmms_eval.tasks.pope import utils as pope

Doc = Mapping[str, Any]


def muirbench_results(doc: Doc, results: Sequence[str]) -> dict[str, float]:
    """Return 1.0 for a right answer, else 0.0."""
    made = muirbench.process_results(doc, results)
    return {name: muirbench.is_right(result) for name, result in made.items()}


def ocrbench_results(doc: Doc, results: Sequence[str]) -> dict[str, float]:
    """Return 1.0 for a right answer, else 0.0; the benchmark's own number is divided by 1,000 whatever was asked."""
    return {"ocrbench_accuracy": float(ocrbench.process_results(doc, results)["ocrbench_accuracy"]["score"])}


def pope_results(doc: Doc, results: Sequence[str]) -> dict[str, float]:
    """Return 1.0 for a right answer, else 0.0."""
    return {"pope_accuracy": pope.process_results(doc, results)["pope_accuracy"]["score"]}
