"""Records of the sandbox that judged a run's programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def sandbox_record() -> dict[str, Any]:
    """Return the layers that confine programs now, and whether running without them is allowed."""
    from lmms_eval.sandbox.launcher import current_policy

    policy = current_policy()
    return {
        "layers": [layer.name for layer in policy.probe() if layer.active],
        "allow_unsafe_code": policy.allow_unsafe,
    }


def distinct_sandboxes(values: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the distinct records of queries: several only if a run was resumed on another machine."""
    found: list[dict[str, Any]] = []
    for value in values:
        record = value.get("sandbox")
        if record is not None and record not in found:
            found.append(record)
    return found
