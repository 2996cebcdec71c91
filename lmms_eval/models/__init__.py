"""Back ends by name, the adapter for plugins of the class interface, and the models that need no weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmms_eval.api.registry import ModelManifest

_OF_THE_REGISTRY = ("AVAILABLE_CHAT_TEMPLATE_MODELS", "AVAILABLE_SIMPLE_MODELS")
__all__ = ["get_model", "get_model_manifest", "list_available_models"]


def get_model(model_name: str, force_simple: bool = False) -> type[Any]:
    """Return the class of a model name (built-in models and entry points).

    Raises:
        UnknownNameError: no model has this name.
        ModelError: its class cannot be imported.
    """
    from lmms_eval.models.registry import ModelRegistry

    return ModelRegistry().resolve(model_name, force_simple).load()


def get_model_manifest(model_name: str) -> ModelManifest:
    """Return the manifest of a name or alias. Raises ``UnknownNameError``."""
    from lmms_eval.models.registry import ModelRegistry

    return ModelRegistry().get_manifest(model_name)


def list_available_models(include_aliases: bool = False) -> list[str]:
    """Return the sorted names of models."""
    from lmms_eval.models.registry import ModelRegistry

    registry = ModelRegistry()
    return registry.list_model_names() if include_aliases else registry.list_canonical_model_ids()


def __getattr__(name: str) -> Any:
    """Import the tables of names, and the registry that programs of the family extend, on first access."""
    if name in _OF_THE_REGISTRY:
        from lmms_eval.models import registry

        return getattr(registry, name)
    if name == "MODEL_REGISTRY_V2":
        from lmms_eval.models.registry import ModelRegistry

        globals()[name] = ModelRegistry()
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
