"""A benchmark's own options (``lmms_eval_specific_kwargs``, ``--task_kwargs``) as a dataclass with the same fields."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from msgspec import Struct
from msgspec.structs import fields

from lmms_eval.errors import TaskError

T = TypeVar("T", bound="BenchmarkOptions")
Rule = tuple[str, Callable[[Any], bool]]
"""The values that an option may have: in words, and as a check."""
FLAG: Rule = ("true or false", lambda value: isinstance(value, bool))


def one_of(*choices: str) -> Rule:
    """Return the rule for some texts; the empty one is called "nothing"."""
    return " or ".join(choice or "nothing" for choice in choices), lambda value: value in choices


def at_least(least: int, wanted: str = "") -> Rule:
    """Return the rule for whole numbers from ``least`` on."""
    return wanted or f"a whole number from {least} on", lambda value: type(value) is int and value >= least


class BenchmarkOptions(Struct, frozen=True, kw_only=True, dict=True):
    """Base of a benchmark's options: the places of its data."""

    benchmark: ClassVar[str]
    """Name of the benchmark, for messages."""
    rules: ClassVar[Mapping[str, Rule]] = {}
    """Rules by option. The default value of an option fits in any case."""

    data_root: str | None = None
    """The run's local data (``--data_root``)."""
    data_folder: str | None = None
    """A folder of data next to the benchmark's module, which takes precedence over ``data_root``."""

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> Self:
        """Read the options in a mapping; mappings in it (settings of other models) are skipped.

        The same values give the same object: every function of a task reads its options for every document.

        Raises:
            TaskError: an unknown name or a value that does not fit.
        """
        stated = {name: value for name, value in (given or {}).items() if not isinstance(value, Mapping)}
        for name, value in stated.items():
            if isinstance(value, list):
                raise wrong_option(cls.benchmark, name, "one value", value)
        return cls._checked(tuple(stated), *stated.values())

    @classmethod
    @functools.lru_cache(maxsize=256, typed=True)  # 1 and true are equal, but no option takes both
    def _checked(cls, names: tuple[str, ...], *values: Any) -> Self:
        options = read_options(cls, dict(zip(names, values, strict=True)), cls.benchmark)
        defaults = {field.name: field.default for field in fields(cls)}
        for name, (wanted, fits) in cls.rules.items():
            value = getattr(options, name)
            if value is not defaults[name] and not fits(value):
                raise wrong_option(cls.benchmark, name, wanted, value)
        options.check()
        return options

    @functools.cached_property
    def folder(self) -> Path | None:
        """``data_folder`` as a path."""
        return None if self.data_folder is None else Path(inspect.getfile(type(self))).parent / self.data_folder

    def check(self) -> None:
        """Refuse values that do not fit each other, or that no rule describes.

        Raises:
            TaskError: one does not.
        """


def read_options(cls: type[T], given: Mapping[str, Any] | None, benchmark: str) -> T:
    """Read the options in a mapping without checking values. Mappings in it (settings of other models) are skipped.

    Raises:
        TaskError: a name is not a field of ``cls``.
    """
    stated = {key: value for key, value in (given or {}).items() if not isinstance(value, Mapping)}
    known = sorted(cls.__struct_fields__, key=BenchmarkOptions.__struct_fields__.__contains__)
    for key in stated:
        if key not in known:
            raise TaskError(f"{benchmark} has no task option {key!r}; there is: {', '.join(known)}")
    return cls(**stated)


def wrong_option(benchmark: str, name: str, wanted: str, value: Any) -> TaskError:
    """Make the error for a value that does not fit."""
    return TaskError(f"{benchmark}: task option {name} must be {wanted}, not {value!r}")
