"""The registry of models, by the names that plugins of the family import."""

from __future__ import annotations

from lmms_eval.api.registry import ModelManifest
from lmms_eval.models.registry import ModelRegistry
from lmms_eval.models.resolved import ResolvedModel

__all__ = ["ModelManifest", "ModelRegistry", "ResolvedModel"]
