"""General-Bench's metrics over texts, arrays, embeddings and frames."""

from __future__ import annotations

from typing import Any

from lmms_eval.errors import LmmsEvalError
from tests.parity.adapters.general_bench_levels import decoded
from tests.parity.compare import agree
from tests.parity.general_bench_functions import functions
from tests.parity.vectors import PASSED, Vector, Verdict, failed, line_adapter

FLOAT32 = {
    "video_depth_absrel", "frechet_from_embeddings", "frechet_from_stats", "structure_measure",
    "video_object_s_measure",
}  # fmt: skip
"""Computed in single precision by the reference."""
PARTS = {"video_depth_absrel": "absRel", "dynamic_degree_decision": "moving"}
"""Of the recorded values the one that a metric is."""


@line_adapter(
    "general_bench/text_metrics.jsonl", "general_bench/array_metrics.jsonl", "general_bench/misc_metrics.jsonl"
)
def check_metric(vector: Vector) -> Verdict:
    record = vector.record
    name, expected = record["fn"], record["expected"]
    function = functions().get(name)
    if function is None:
        return failed(f"no function for {name!r}")
    arguments = (decoded(record["input"]),) if "input" in record else (record["predictions"], record["references"])
    try:
        found = function(*arguments)
    except LmmsEvalError as error:
        return PASSED if "error" in expected else failed(f"raised {type(error).__name__}: {error}")
    if "error" in expected:
        return failed(f"{found!r} instead of {expected['error']}")
    wanted = decoded(expected["value"])
    wanted = wanted[PARTS[name]] if name in PARTS else wanted
    return PASSED if _agrees(name, wanted, found) else failed(f"{found!r} instead of {wanted!r}")


def _agrees(name: str, wanted: Any, found: Any) -> bool:
    tolerance = 1e-6 if name in FLOAT32 else 1e-9
    return agree(wanted, found, tolerance, tolerance if name in FLOAT32 else 1e-12)
