"""A benchmark's own options (``lmms_eval_specific_kwargs``, ``--task_kwargs``) as a dataclass with the same fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from lmms_eval.errors import TaskError

T = TypeVar("T")


def read_options(cls: type[T], given: Mapping[str, Any] | None, benchmark: str) -> T:
    """The options in a mapping; mappings in it (settings of other models) are passed over. Values are not checked.

    Raises:
        TaskError: a name that is no field of ``cls``.
    """
    stated = {key: value for key, value in (given or {}).items() if not isinstance(value, Mapping)}
    known = [field.name for field in fields(cls)]  # type: ignore[arg-type]  # every benchmark's options are a dataclass
    for key in stated:
        if key not in known:
            raise TaskError(f"{benchmark} has no task option {key!r}; there is: {', '.join(known)}")
    return cls(**stated)


def wrong_option(benchmark: str, name: str, wanted: str, value: Any) -> TaskError:
    """The error for a value that does not fit."""
    return TaskError(f"{benchmark}: task option {name} must be {wanted}, not {value!r}")
