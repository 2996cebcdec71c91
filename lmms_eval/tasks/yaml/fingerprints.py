"""Values that tell whether a task is the same as in an earlier run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from lmms_eval.tasks.yaml.functions import module_source
from lmms_eval.utils.stated_path import StatedPath


def absolute_paths(kwargs: Mapping[str, Any] | None) -> Any:
    """Returns data paths as they were found: beside the file that states them, where they exist there."""

    def absolute(value: Any) -> Any:
        if isinstance(value, StatedPath):
            return str(value.beside) if value.beside.exists() else str(value)
        if isinstance(value, Mapping):
            return {key: absolute(item) for key, item in value.items()}
        return [absolute(item) for item in value] if isinstance(value, list) else value

    return absolute(kwargs)


def hash_of_text(text: str) -> str:
    """Computes the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def hash_of_functions(values: Any) -> str:
    """Computes the hash of the modules that functions come from; what is no function stands in the configuration."""
    return hash_of_text("\n".join(sorted({module_source(value) for value in values if callable(value)})))
