"""Registries: lazy tables of names, which suggest similar names for an unknown one."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from msgspec import Struct

from lmms_eval.errors import LmmsEvalError, UnknownNameError
from lmms_eval.utils.numbers import ScoreRange

V = TypeVar("V")
C = TypeVar("C", bound=Callable[..., Any])


def import_object(path: str) -> Any:
    """Import ``package.module:attribute`` or ``package.module.attribute``."""
    module_name, _, attribute = path.partition(":") if ":" in path else path.rpartition(".")
    module = importlib.import_module(module_name)
    try:
        return getattr(module, attribute)
    except AttributeError as error:
        raise LmmsEvalError(f"{module_name} has no {attribute!r} (registered as {path!r})") from error


class Registry(Generic[V]):
    """Mapping of names to values; a value that is given as a dotted path is imported on first access."""

    def __init__(self, kind: str, hint: str = "") -> None:
        self.kind, self.hint = kind, hint
        self._values: dict[str, V] = {}
        self._paths: dict[str, str] = {}

    def add(self, name: str, value: V) -> None:
        self._paths.pop(name, None)
        self._values[name] = value

    def add_path(self, name: str, path: str) -> None:
        """Register ``package.module:attribute`` without importing it."""
        self._values.pop(name, None)
        self._paths[name] = path

    def add_paths(self, paths: Mapping[str, str]) -> None:
        for name, path in paths.items():
            self.add_path(name, path)

    def get(self, name: str) -> V:
        """Return the value of a name. Raises ``UnknownNameError`` with similar known names."""
        if name not in self._values:
            if name not in self._paths:
                raise UnknownNameError(self.kind, name, self.names(), self.hint)
            self._values[name] = import_object(self._paths[name])
        return self._values[name]

    def names(self) -> list[str]:
        return sorted({*self._values, *self._paths})

    def __contains__(self, name: object) -> bool:
        return name in self._values or name in self._paths


@dataclass(frozen=True, slots=True)
class ModelManifest:
    """The name of a model with the paths of its classes for the simple and the chat interface (at least one)."""

    model_id: str
    simple_class_path: str | None = None
    chat_class_path: str | None = None
    aliases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (self.simple_class_path or self.chat_class_path):
            raise ValueError(f"manifest of model {self.model_id!r}: give simple_class_path or chat_class_path")

    @property
    def kind(self) -> str:
        if self.simple_class_path and self.chat_class_path:
            return "chat+simple"
        return "chat" if self.chat_class_path else "simple"


METRICS: Registry[Any] = Registry("metric")
AGGREGATIONS: Registry[Any] = Registry("aggregation")
FILTERS: Registry[Any] = Registry("filter")
MODEL_REGISTRY: dict[str, type[Any]] = {}
"""Classes registered by ``@register_model`` in this process, by name; a plugin may remove its own name."""


def register_model(*names: str) -> Callable[[type[V]], type[V]]:
    """Register a model plugin under these names in this process (class decorator)."""

    def register(cls: type[V]) -> type[V]:
        for name in names:
            known = MODEL_REGISTRY.get(name)
            if known is not None and (known.__module__, known.__qualname__) != (
                cls.__module__,
                cls.__qualname__,
            ):
                raise ValueError(f"model name {name!r} is already taken by {known.__module__}.{known.__qualname__}")
            MODEL_REGISTRY[name] = cls
        return cls

    return register


def register_filter(name: str) -> Callable[[C], C]:
    """Register a filter for ``filter_list`` under a name (class decorator)."""

    def register(cls: C) -> C:
        FILTERS.add(name, cls)
        return cls

    return register


class RegisteredMetric(Struct, frozen=True):
    """A metric function for single documents, with its defaults."""

    function: Callable[..., Any]
    higher_is_better: bool | None = None
    aggregation: str | None = None
    output_types: tuple[str, ...] = ()
    score_range: ScoreRange | None = None
    """Range of a document's value, and so of the mean."""


def register_metric(
    *,
    metric: str,
    higher_is_better: bool | None = None,
    aggregation: str | None = None,
    output_type: str | Iterable[str] = (),
    score_range: ScoreRange | None = None,
) -> Callable[[C], C]:
    """Register a metric function for ``metric_list`` under a name (function decorator)."""
    types = (output_type,) if isinstance(output_type, str) else tuple(output_type)

    def register(function: C) -> C:
        METRICS.add(metric, RegisteredMetric(function, higher_is_better, aggregation, types, score_range))
        return function

    return register


def register_aggregation(name: str) -> Callable[[C], C]:
    """Register an aggregation over all documents for ``metric_list`` under a name (function decorator)."""

    def register(function: C) -> C:
        AGGREGATIONS.add(name, function)
        return function

    return register


def get_metric(name: str) -> Callable[..., Any]:
    """Return the function of a registered or built-in metric; of several functions that for generated answers.

    Raises:
        UnknownNameError: there is no metric of that name, or it has no function.
    """
    entry = _entry("metric", name, METRICS)
    if isinstance(entry, RegisteredMetric):
        return entry.function
    kinds = sorted(entry.output_types, key=lambda kind: kind != "generate_until")
    if not kinds:
        raise UnknownNameError("metric", name, (), "has no function: tasks that emit it only aggregate")
    found: Callable[..., Any] = entry.function(kinds[0])
    return found


def get_aggregation(name: str) -> Callable[..., Any]:
    """Return an aggregation by its name. Raises ``UnknownNameError``."""
    entry = _entry("aggregation", name, AGGREGATIONS)
    found: Callable[..., Any] = entry if name in AGGREGATIONS else entry.function()
    return found


def get_metric_aggregation(name: str) -> Callable[..., Any]:
    """Return the aggregation that a metric has by default. Raises ``UnknownNameError``."""
    return get_aggregation(_entry("metric", name, METRICS).aggregation or "mean")


def is_higher_better(name: str) -> bool | None:
    """Return whether a higher value of a metric is better; ``None``: unknown. Raises ``UnknownNameError``."""
    found: bool | None = _entry("metric", name, METRICS).higher_is_better
    return found


def get_filter(name: str) -> Any:
    """Return a filter's class by its name. Raises ``UnknownNameError``."""
    return import_object("lmms_eval.filters:get_filter")(name)


def get_model(name: str) -> Any:
    """Return a model's class by its name. Raises ``UnknownNameError`` or ``ModelError``."""
    return import_object("lmms_eval.models:get_model")(name)


def _entry(kind: str, name: str, added: Registry[Any]) -> Any:
    """Return the entry of a name from the registered ones, else from the package's own table."""
    if name in added:
        return added.get(name)
    table: Mapping[str, Any] = import_object(f"lmms_eval.metrics.table:{kind.upper()}S")
    if name not in table:
        raise UnknownNameError(kind, name, {*table, *added.names()})
    return table[name]
