"""Contracts for authors of models and tasks. Imports nothing else of the package but the exception tree."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "Answer": "task", "ChatMessages": "messages", "Estimate": "outcome", "Exchange": "task",
    "GeneratedImage": "request",
    "GenerationResult": "instance",
    "Instance": "instance", "InterleavedText": "interleaved", "JudgeQuestion": "judging", "Model": "model",
    "ModelManifest": "registry", "NotEvaluated": "outcome",
    "Registry": "registry", "Request": "request", "RequestStream": "model", "Response": "request",
    "ResponseError": "request", "Task": "task", "TokenCounts": "instance", "Unscored": "outcome",
    "Usage": "request", "Verdict": "judging", "Withheld": "outcome",
    "lmms": "model", "register_aggregation": "registry",
    "register_filter": "registry", "register_metric": "registry", "register_model": "registry",
}  # fmt: skip
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"lmms_eval.api.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
