"""Reading recorded values and comparing ours with them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

from msgspec import Struct

from lmms_eval.utils.records import to_dict

REL_TOL = 1e-9
ABS_TOL = 1e-12
TEXT_SCORE_REL_TOL = 1e-6


def decode(value: Any) -> Any:
    """Undo ``{"$float": "nan"}`` and ``{"$tuple": […]}``, at any depth."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if isinstance(value, Mapping):
        if set(value) == {"$float"}:
            return float(value["$float"])
        if set(value) == {"$tuple"}:
            return tuple(decode(item) for item in value["$tuple"])
        return {key: decode(item) for key, item in value.items()}
    return value


def plain(value: Any) -> Any:
    """Our records as dictionaries, at any depth."""
    if (is_dataclass(value) or isinstance(value, Struct)) and not isinstance(value, type):
        return plain(to_dict(value))
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def _numbers_agree(expected: float, actual: float, rel_tol: float, abs_tol: float) -> bool:
    if math.isnan(expected) or math.isnan(actual):
        return math.isnan(expected) and math.isnan(actual)
    return math.isclose(expected, actual, rel_tol=rel_tol, abs_tol=abs_tol)


def agree(expected: Any, actual: Any, rel_tol: float = REL_TOL, abs_tol: float = ABS_TOL) -> bool:
    """Numbers within the tolerance (``1`` equals ``1.0``), everything else exactly; tuples count as lists."""
    if isinstance(expected, bool) or isinstance(actual, bool):
        return isinstance(expected, bool) and isinstance(actual, bool) and expected == actual
    if isinstance(expected, int | float) and isinstance(actual, int | float):
        return _numbers_agree(expected, actual, rel_tol, abs_tol)
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        return set(expected) == set(actual) and all(
            agree(expected[key], actual[key], rel_tol, abs_tol) for key in expected
        )
    if isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        return len(expected) == len(actual) and all(
            agree(one, other, rel_tol, abs_tol) for one, other in zip(expected, actual, strict=True)
        )
    return type(expected) is type(actual) and bool(expected == actual)
