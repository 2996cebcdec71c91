"""Writes ``lmms_eval/config/keywords.py``, which type checkers read: ``make keywords``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from lmms_eval.config import convert, keywords
from lmms_eval.config.options import Option, options
from lmms_eval.evaluator import IGNORED, SEEDS

FILE = Path(keywords.__file__)
HEAD = '''"""The arguments of ``simple_evaluate`` with their types, for type checkers and editors.

``make keywords`` writes this file from the declaration of the options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from lmms_eval.api.task import Task


class EvaluateArguments(TypedDict, total=False):
    """The options of ``RunConfig`` except ``model``, and further arguments; ``None`` means the default."""

'''


def accepted(option: Option) -> Any:
    """Return the type of the values that callers may pass for an option, without ``None``."""
    if option.form:
        return get_type_hints(getattr(convert, option.form))["value"]
    return option.kind | bool if "true" in option.choices else option.kind


def written(kind: Any) -> str:
    """Return a type as source text."""
    if get_origin(kind) in (Union, UnionType):
        return " | ".join(map(written, sorted(get_args(kind), key=lambda one: one is NoneType)))
    if kind in (bool, float, int, str, NoneType):
        return str(kind.__name__).replace("NoneType", "None")
    return re.sub(r"\b(collections\.abc|typing)\.", "", str(kind)).replace("'", '"')


def lines() -> Iterator[str]:
    """Yield the members of the class."""
    for option in options():
        kind = written(accepted(option) | None)
        if option.name == "tasks":
            kind = kind.replace("Sequence[str]", "Sequence[Any] | Task")
        if option.name != "model":
            yield f"    {option.name}: {kind}\n"
    for name in SEEDS:
        yield f"    {name}: int | None\n"
    for name, kind in IGNORED.items():
        yield f"    {name}: {kind}\n"


def text() -> str:
    """Return the content of the file."""
    return HEAD + "".join(lines())


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
