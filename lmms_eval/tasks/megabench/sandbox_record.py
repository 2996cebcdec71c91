"""Records of the sandbox that a run's programs were judged in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def sandbox_record() -> dict[str, Any]:
    """The layers that confine programs here and now, and whether doing without was allowed."""
    from lmms_eval.sandbox.launcher import current_policy

    policy = current_policy()
    return {
        "layers": [layer.name for layer in policy.probe() if layer.active],
        "allow_unsafe_code": policy.allow_unsafe,
    }


def distinct_sandboxes(values: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The records among the values of queries, each once: one, unless a run was continued on another machine."""
    found: list[dict[str, Any]] = []
    for value in values:
        record = value.get("sandbox")
        if record is not None and record not in found:
            found.append(record)
    return found
