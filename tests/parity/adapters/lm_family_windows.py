"""Vectors of lm-eval's windows over tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lmms_eval.models.windows import disjoint, rolling_windows
from tests.parity.compare import agree, decode
from tests.parity.vectors import PASSED, Vector, Verdict, failed, line_adapter, pending


def _windows(token_list: Sequence[int], prefix_token: int, max_seq_len: int, context_len: int) -> list[Any]:
    return [list(window) for window in rolling_windows(token_list, prefix_token, max_seq_len, context_len)]


def _disjoint(**keywords: Any) -> list[Any]:
    return [list(disjoint((given, predicted))) for given, predicted in _windows(**keywords)]


FUNCTIONS = {"get_rolling_token_windows": _windows, "disjoint_windows": _disjoint}


@line_adapter("lm_family/fn_windows.jsonl")
def windows(vector: Vector) -> Verdict:
    record = vector.record
    function = FUNCTIONS.get(record["function"])
    if function is None:
        return pending(f"function {record['function']}")
    try:
        found = function(*decode(record["args"]), **decode(record["kwargs"]))
    except ValueError as error:
        return PASSED if "raises" in record else failed(f"raises {error}")
    if "raises" in record:
        return failed(f"gives {found!r}, where {record['raises']} is expected")
    return PASSED if agree(decode(record["expected"]), found) else failed(f"{record['expected']!r} != {found!r}")
