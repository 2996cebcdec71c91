"""Tasks: the catalogue of YAML files, and what becomes of a chosen one. Names are imported at first use."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "Catalogue": "catalogue", "TaskManager": "manager", "YamlTask": "yaml.task", "build_from_spec": "selection",
    "get_task_dict": "manager", "select_tasks": "selection",
}  # fmt: skip
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"lmms_eval.tasks.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
