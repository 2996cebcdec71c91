"""Back ends by name, the adapter for plugins of the class interface, and the models that need no weights."""

from __future__ import annotations

from typing import Any

__all__ = ["get_model"]


def get_model(model_name: str, force_simple: bool = False) -> type[Any]:
    """The class behind a model name (entry points and built-in models).

    Raises:
        UnknownNameError: no model has this name.
        ModelError: its class cannot be imported.
    """
    from lmms_eval.models.registry import ModelRegistry

    return ModelRegistry().resolve(model_name, force_simple).load()
