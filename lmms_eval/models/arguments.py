"""Arguments of models as people are shown them: name, kind, default, meaning. Nothing is built or downloaded."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lmms_eval.models.building import ignored_arguments
from lmms_eval.utils.redaction import is_secret_key
from lmms_eval.utils.task_files import read_table

MEANINGS = Path(__file__).with_name("arguments.tsv")
Kind = Literal["switch", "whole number", "number", "JSON", "text"]
_KINDS: Mapping[Any, Kind] = {bool: "switch", int: "whole number", float: "number", dict: "JSON"}
_MODEL = ("model", "pretrained")
_NAMES = {kind.__name__: kind for kind in (bool, int, float, dict)}


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a model class."""

    name: str
    kind: Kind
    default: bool | int | float | str | None
    """``None``: there is none, or the model's own holds."""
    is_required: bool
    choices: tuple[str, ...]
    meaning: str
    """Empty for arguments of plugins that say nothing of them."""
    other_names: tuple[str, ...]
    is_first: bool
    """One of the few that most people give."""
    is_secret: bool


@dataclass(frozen=True, slots=True)
class _Stated:
    """An argument as the code states it."""

    name: str
    annotation: Any
    default: Any


def arguments_of(name: str, cls: type[Any]) -> tuple[Argument, ...]:
    """List the arguments of a model class, those that most people give first.

    Args:
        name: the registry's name of the model, for meanings that differ between models.
    """
    others = _other_names(cls)
    stated = [one for one in _stated(cls) if one.name not in others]
    found = [_argument(one, name, others) for one in stated if not ignored_arguments(cls, [one.name])]
    return tuple(sorted(found, key=lambda one: (one.name not in _MODEL, not (one.is_required or one.is_first))))


def _stated(cls: type[Any]) -> Iterator[_Stated]:
    if kind := _fields_class(cls):
        for name, field in kind.model_fields.items():
            default = inspect.Parameter.empty if field.is_required() else field.get_default(call_default_factory=True)
            yield _Stated(name, field.annotation, default)
        return
    for name, parameter in inspect.signature(cls).parameters.items():
        if parameter.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
            yield _Stated(name, parameter.annotation, parameter.default)


def _fields_class(cls: type[Any]) -> Any:
    """The pydantic class that checks the arguments, where there is one."""
    return getattr(cls, "arguments_kind", None)


def _other_names(cls: type[Any]) -> Mapping[str, str]:
    if (kind := getattr(cls, "arguments_kind", None)) is not None:
        return dict(kind.same)
    return dict(getattr(getattr(cls, "profile", None), "aliases", {}))


def _argument(stated: _Stated, model: str, others: Mapping[str, str]) -> Argument:
    name, (kind, choices) = stated.name, kind_of(stated.annotation)
    meaning, is_first = _meaning(name, model)
    needed = stated.default is inspect.Parameter.empty or (name in _MODEL and not stated.default)
    default = stated.default if isinstance(stated.default, bool | int | float | str) else None
    own = tuple(sorted(other for other, target in others.items() if target == name))
    return Argument(name, kind, default, needed, choices, meaning, own, is_first, is_secret_key(name))


def kind_of(annotation: Any) -> tuple[Kind, tuple[str, ...]]:
    """Read an annotation, which may be the text of one: kind, and choices where it names them."""
    if isinstance(annotation, str):
        parts = [part.strip() for part in annotation.split("|")]
        known = {_NAMES.get(part.partition("[")[0]) for part in parts if part != "None"}
    else:
        unions = (typing.Union, types.UnionType)
        members = typing.get_args(annotation) if typing.get_origin(annotation) in unions else (annotation,)
        members = tuple(member for member in members if member is not type(None))
        if len(members) == 1 and typing.get_origin(members[0]) is Literal:
            return "text", tuple(map(str, typing.get_args(members[0])))
        known = {typing.get_origin(member) or member for member in members}
    (only,) = known if len(known) == 1 else (None,)
    return _KINDS.get(only, "text"), ()


def _meaning(name: str, model: str) -> tuple[str, bool]:
    """The meaning of an argument, and whether most people give it: the row for the model, else that for all."""
    rows = [row for row in read_table(MEANINGS) if row["argument"] == name]
    fitting = [row for row in rows if not row["models"] or model in row["models"].split(",")]
    row = max(fitting, key=lambda one: bool(one["models"]), default=None)
    return ("", False) if row is None else (row["meaning"], row["place"] == "first")
