"""The registry of models, by the names that plugins of the family import."""

from __future__ import annotations

from lmms_eval.api.registry import ModelManifest
from lmms_eval.models.building import ResolvedModel
from lmms_eval.models.registry import ModelRegistry

__all__ = ["ModelManifest", "ModelRegistry", "ResolvedModel"]
