"""Vectors of the helpers that model plugins of the family import (``family_functions/plugins.jsonl``)."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from PIL import Image

from lmms_eval import imports
from lmms_eval.compat.concurrency import format_time
from lmms_eval.errors import LmmsEvalError
from lmms_eval.models.model_utils import (
    audio_processing,
    concurrency_control,
    media_encoder,
    reasoning_model_utils,
    usage_metrics,
)
from lmms_eval.utils.records import to_dict
from tests.parity.compare import agree, decode, plain
from tests.parity.keys import keyed
from tests.parity.vectors import PASSED, Vector, Verdict, deviates, failed, line_adapter

Call = Callable[..., Any]
DEFECT_RULE = "family_defect_is_mended"
READING = ("get_running_totals", "is_budget_exceeded", "summarize_usage_metrics")
HOMES = (audio_processing, concurrency_control, reasoning_model_utils)


def _from_raw(*values: Any) -> dict[str, Any]:
    return to_dict(concurrency_control.AdaptiveConcurrencyConfig.from_raw(*values))


def _decide(  # the positions of the vectors
    current: int, total: int, failures: int, limited: int, latencies: Sequence[float], config: Sequence[Any]
) -> dict[str, Any]:
    decision = concurrency_control.decide_next_concurrency(
        current_concurrency=current,
        total_requests=total,
        failed_requests=failures,
        rate_limited_requests=limited,
        latencies=latencies,
        config=concurrency_control.AdaptiveConcurrencyConfig.from_raw(*config),
    )
    return to_dict(decision)


def _usage(steps: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Any]:
    usage_metrics.reset_usage_metrics()
    try:
        done = [(name, getattr(usage_metrics, name)(**keywords)) for name, keywords in steps]
    finally:
        usage_metrics.reset_usage_metrics()
    return [value for name, value in done if name in READING]


def _required(*args: Any, **kwargs: Any) -> dict[str, Any] | None:
    try:
        imports.require_package(*args, **kwargs)
    except ImportError as error:
        return {"error": type(error).__name__, "is_import_error": True, "message": str(error)}
    return None


def _optional(*args: Any, **kwargs: Any) -> list[Any]:
    found, is_there = imports.optional_import(*args, **kwargs)
    return [getattr(found, "__name__", found), is_there]


def _picture(mode: str, size: Sequence[int], colour: Any, **kwargs: Any) -> dict[str, Any]:
    given = Image.new(mode, tuple(size), tuple(colour) if isinstance(colour, list) else colour)
    made = Image.open(io.BytesIO(media_encoder.encode_image_to_bytes(given, **kwargs)))
    return {"format": made.format, "mode": made.mode, "size": list(made.size), "input_mode": given.mode}


ADAPTED: dict[str, Call] = {
    "AdaptiveConcurrencyConfig.from_raw": _from_raw,
    "decide_next_concurrency": _decide,
    "encode_image_to_bytes": _picture,
    "optional_import": _optional,
    "progress_format_time": format_time,
    "require_package": _required,
    "usage_sequence": _usage,
}


@line_adapter("family_functions/plugins.jsonl")
@keyed("function", "args*", "kwargs*", "expected*", "raises", "defect", "wanted", "note")
def judge(vector: Vector) -> Verdict:
    """Call our function of that name; of a defect the wanted value counts, and any error where one is recorded."""
    record = vector.record
    name, is_defect = record["function"], record.get("defect", False)
    function = ADAPTED.get(name) or next(getattr(home, name) for home in HOMES if hasattr(home, name))
    args, kwargs = decode(record["args"]), decode(record["kwargs"])
    if "raises" in record and not is_defect:
        try:
            found = function(*args, **kwargs)
        except (LmmsEvalError, ValueError):
            return PASSED
        return failed(f"{found!r} instead of {record['raises']}")
    expected, found = decode(record["wanted" if is_defect else "expected"]), plain(function(*args, **kwargs))
    if not agree(expected, found):
        return failed(f"{found!r} instead of {expected!r}")
    return deviates(DEFECT_RULE) if is_defect else PASSED
