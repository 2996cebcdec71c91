"""Evaluation of large multimodal models: official scores, their uncertainty, and a record that survives anything."""

from __future__ import annotations

from typing import Any

from lmms_eval.aliases import install as _install

__all__ = ["__version__", "simple_evaluate"]
_install()


def __getattr__(name: str) -> Any:
    """Loads what is asked for: importing the package costs nothing."""
    if name == "simple_evaluate":
        from lmms_eval.evaluator import simple_evaluate

        return simple_evaluate
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("lmms_eval")
        except PackageNotFoundError:
            return "unknown"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
