"""The names that plugins of the family import from here."""

from __future__ import annotations

from lmms_eval.api.registry import ModelManifest
from lmms_eval.models.registry import ModelRegistry, ResolvedModel

__all__ = ["ModelManifest", "ModelRegistry", "ResolvedModel"]
