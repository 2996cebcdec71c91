"""Names that plugins of the family import from this module."""

from __future__ import annotations

from lmms_eval.compat.model_registry import ModelManifest as ModelManifest
from lmms_eval.compat.model_registry import ModelRegistry as ModelRegistry
from lmms_eval.compat.model_registry import ResolvedModel as ResolvedModel

ModelRegistryV2 = ModelRegistry
