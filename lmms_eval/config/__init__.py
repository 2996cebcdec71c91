"""The options of a run: declared in ``options``, read from the command line, a file and the environment."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lmms_eval.config.options import RunConfig

if TYPE_CHECKING:
    from lmms_eval.config.convert import argument_text
    from lmms_eval.config.flags import parse_flags
    from lmms_eval.config.resolve import (
        LoadedConfigs,
        answer_options,
        build_config,
        load_configs,
        resolved_cli_args,
    )
    from lmms_eval.config.rules import check_config

_HOMES = {
    "LoadedConfigs": "resolve",
    "answer_options": "resolve",
    "argument_text": "convert",
    "build_config": "resolve",
    "check_config": "rules",
    "load_configs": "resolve",
    "parse_flags": "flags",
    "resolved_cli_args": "resolve",
}
__all__ = [
    "LoadedConfigs",
    "RunConfig",
    "answer_options",
    "argument_text",
    "build_config",
    "check_config",
    "load_configs",
    "parse_flags",
    "resolved_cli_args",
]


def __getattr__(name: str) -> Any:
    """Loads what needs pydantic or YAML when it is asked for."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"lmms_eval.config.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
