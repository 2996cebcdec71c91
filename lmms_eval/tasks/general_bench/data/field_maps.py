"""The keys of an item's question, media and reference answer, for tasks without a published schema."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from lmms_eval.errors import DataError, TaskError, UnknownNameError
from lmms_eval.tasks.general_bench.data.forms import FORMS
from lmms_eval.tasks.general_bench.facts import TaskFacts, find_task, sheets
from lmms_eval.tasks.general_bench.facts.metrics import metrics
from lmms_eval.tasks.general_bench.items import Form, MediaKind
from lmms_eval.tasks.yaml.loader import parse_text
from lmms_eval.utils.files import read_text

KeyPath = tuple[str, ...]
"""Keys from the item inwards."""
_LAYERS = ("default", "sheets", "metrics", "tasks")
_KEYS = ("prompt", "media", "output", "form", "reference")
_KINDS: tuple[MediaKind, ...] = get_args(MediaKind)


class FieldMap(Struct, frozen=True):
    """Key paths of a task's items. The first existing one counts."""

    prompt: tuple[KeyPath, ...] = ()
    media: Mapping[MediaKind, tuple[KeyPath, ...]] = field(default_factory=dict)
    output: tuple[KeyPath, ...] = ()
    form: Form | None = None
    """Form of answers, or ``None`` if the reference's key and the row imply it."""
    is_required: bool = True
    """Whether an item without these keys in its ``output`` cannot be evaluated (otherwise it has no reference)."""


def load_field_maps(path: Path | None) -> Callable[[TaskFacts], FieldMap]:
    """Return a function for the field map of a task: the package's, overridden by a user's YAML file.

    Later layers override earlier ones. Each has ``default``, ``sheets``, ``metrics`` and ``tasks`` (by
    ``TaskFacts.id``), which hold entries of ``prompt``, ``media``, ``output``, ``form`` and ``is_required``, as far as
    they are given.

    Raises:
        DataError: the file cannot be read, or holds unknown keys or values.
        UnknownNameError: it names an unknown task, sheet or metric.
    """
    layers = [_package_layer(), *([] if path is None else [_layer(path)])]

    def map_of(facts: TaskFacts) -> FieldMap:
        found = FieldMap()
        for layer in layers:
            keys = (("sheets", facts.sheet), ("metrics", facts.metric), ("tasks", facts.id))
            for entry in (layer["default"], *(layer[name].get(key, {}) for name, key in keys)):
                found = replace(found, **entry)
        return found

    return map_of


@functools.cache
def _package_layer() -> Mapping[str, Any]:
    return _layer(Path(__file__).with_name("field_maps.yaml"))


def _layer(path: Path) -> Mapping[str, Any]:
    try:
        content = parse_text(read_text(path), path)
    except TaskError as error:
        raise DataError(str(error)) from error
    found: dict[str, Any] = {name: {} for name in _LAYERS}
    stated: dict[str, Any] = {name: _mapping(content.get(name), f"{path}: `{name}`") for name in _LAYERS}
    stated["tasks"] = {**stated["tasks"], **{name: content[name] for name in content if name not in _LAYERS}}
    found["default"] = _entry(stated["default"], f"{path}: `default`")
    for name in _LAYERS[1:]:
        for key, entry in stated[name].items():
            found[name][_known(name, str(key))] = _entry(entry, f"{path}: `{key}`")
    return found


def _known(layer: str, name: str) -> str:
    """Return the key of a sheet, metric or task."""
    if layer == "tasks":
        return find_task(name).id
    known = sheets() if layer == "sheets" else metrics()
    if name not in known:
        raise UnknownNameError(layer.removesuffix("s"), name, known)
    return name


def _entry(value: object, where: str) -> dict[str, Any]:
    """Read the given fields of a ``FieldMap``."""
    return {key: made for name, given in _mapping(value, where).items() for key, made in _field(name, given, where)}


def _field(name: str, given: object, where: str) -> Iterator[tuple[str, Any]]:
    match name, given:
        case "prompt" | "output", _:
            yield name, _paths(given, f"{where}: `{name}`")
        case "media", _:
            yield name, _media(given, f"{where}: `media`")
        case "form", str() if given in FORMS:
            yield name, given
        case "reference", "required" | "optional":
            yield "is_required", given == "required"
        case "form" | "reference", _:
            known = FORMS if name == "form" else ("required", "optional")
            raise DataError(f"{where}: `{name}` is {given!r:.80}; one of {', '.join(known)} is expected")
        case _:
            raise UnknownNameError("key", str(name), _KEYS, f"({where}: a field map has {', '.join(_KEYS)})")


def _media(value: object, where: str) -> Mapping[MediaKind, tuple[KeyPath, ...]]:
    found: dict[MediaKind, tuple[KeyPath, ...]] = {}
    for name, paths in _mapping(value, where).items():
        kind = next((kind for kind in _KINDS if kind == name), None)
        if kind is None:
            raise UnknownNameError("kind of media", str(name), _KINDS, f"({where}: {', '.join(_KINDS)})")
        found[kind] = _paths(paths, f"{where}: `{kind}`")
    return MappingProxyType(found)


def _paths(value: object, where: str) -> tuple[KeyPath, ...]:
    texts: Sequence[object] = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) and all(text.split(".")) for text in texts):
        raise DataError(
            f"{where} is {value!r:.80}; keys joined by dots (input.prompt), or a list of them, are expected"
        )
    return tuple(tuple(str(text).split(".")) for text in texts)


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise DataError(f"{where} is {value!r:.80}; keys with values are expected")
    return value
