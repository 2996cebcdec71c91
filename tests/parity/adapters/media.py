"""Frame sampling: ``harness/functions/video.jsonl``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lmms_eval.media import sample_count, uniform_indices
from tests.parity.keys import keyed
from tests.parity.vectors import PASSED, Vector, Verdict, failed, line_adapter

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "compute_sample_count": sample_count,
    "compute_uniform_indices": uniform_indices,
}


@line_adapter("harness/functions/video.jsonl")
@keyed("function", "args.*", "kwargs.*", "expected*")
def check(vector: Vector) -> Verdict:
    record = vector.record
    found = FUNCTIONS[record["function"]](*record["args"], **record["kwargs"])
    return PASSED if found == record["expected"] else failed(f"{found!r} instead of {record['expected']!r}")
