"""Small helpers without state; the names that task files and plugins of the family import from here.

A module is imported when one of its names is asked for: commands that need one of them start without the others.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmms_eval.utils.arguments import parse_seed_list, simple_parse_args_string
    from lmms_eval.utils.collator import Collator, Grouper, Reorderer, chunks
    from lmms_eval.utils.concurrency import (
        AdaptiveConfig,
        Decision,
        Window,
        decide,
        extract_text_prefix,
        is_rate_limit_error,
        make_prefix_hash,
        parse_bool,
        requests_before_decision,
    )
    from lmms_eval.utils.markdown import Column, markdown_table
    from lmms_eval.utils.names import (
        baseline_display_name,
        get_sample_size,
        model_name_from_args,
        pattern_match,
        sanitize_long_string,
        sanitize_model_name,
        sanitize_task_name,
        shard_indices,
    )
    from lmms_eval.utils.redaction import is_secret_key, redact, redact_text
    from lmms_eval.utils.table import make_table
    from lmms_eval.utils.template import apply_template, regex_replace
    from lmms_eval.utils.torch_helpers import get_dtype, stop_sequences_criteria

__all__ = [
    "AdaptiveConfig",
    "Collator",
    "Column",
    "Decision",
    "Grouper",
    "Reorderer",
    "Window",
    "apply_template",
    "baseline_display_name",
    "chunks",
    "decide",
    "extract_text_prefix",
    "get_dtype",
    "get_sample_size",
    "is_rate_limit_error",
    "is_secret_key",
    "make_prefix_hash",
    "make_table",
    "markdown_table",
    "model_name_from_args",
    "parse_bool",
    "parse_seed_list",
    "pattern_match",
    "redact",
    "redact_text",
    "regex_replace",
    "requests_before_decision",
    "sanitize_long_string",
    "sanitize_model_name",
    "sanitize_task_name",
    "shard_indices",
    "simple_parse_args_string",
    "stop_sequences_criteria",
]
_MODULES = {
    "arguments": (
        "parse_seed_list",
        "simple_parse_args_string",
    ),
    "collator": (
        "Collator",
        "Grouper",
        "Reorderer",
        "chunks",
    ),
    "concurrency": (
        "AdaptiveConfig",
        "Decision",
        "Window",
        "decide",
        "extract_text_prefix",
        "is_rate_limit_error",
        "make_prefix_hash",
        "parse_bool",
        "requests_before_decision",
    ),
    "markdown": (
        "Column",
        "markdown_table",
    ),
    "names": (
        "baseline_display_name",
        "get_sample_size",
        "model_name_from_args",
        "pattern_match",
        "sanitize_long_string",
        "sanitize_model_name",
        "sanitize_task_name",
        "shard_indices",
    ),
    "redaction": (
        "is_secret_key",
        "redact",
        "redact_text",
    ),
    "table": ("make_table",),
    "template": (
        "apply_template",
        "regex_replace",
    ),
    "torch_helpers": (
        "get_dtype",
        "stop_sequences_criteria",
    ),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
