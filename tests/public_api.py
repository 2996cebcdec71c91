"""The public API as text: names, signatures, fields, commands, options, exit codes, keys of the results document.

``python -m tests.public_api`` (``make api``) writes ``tests/public_api.txt`` anew.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lmms_eval.cli.commands import COMMANDS
from lmms_eval.cli.help import EXIT_CODES, default_text, flag_text
from lmms_eval.config.options import options
from lmms_eval.results.schema import TYPES, schema_file

LIST = Path(__file__).with_suffix(".txt")
MODULES = (
    "lmms_eval",
    "lmms_eval.api",
    "lmms_eval.entrypoints",
    "lmms_eval.errors",
    "lmms_eval.evaluator",
    "lmms_eval.results",
)


def api_text() -> str:
    """Write all that is public, a line each."""
    lines = [line for module in MODULES for line in _module_lines(module)]
    lines += [f"command {name}" for name in COMMANDS]
    lines += [f"option {flag_text(one)} = {default_text(one)}" for one in options()]
    lines += [f"exit code {code}" for code, _ in EXIT_CODES]
    lines += [line for name in TYPES for line in _schema_lines(name)]
    return "\n".join(lines) + "\n"


def _module_lines(name: str) -> Iterator[str]:
    module = importlib.import_module(name)
    for public in sorted(_names(module)):
        yield from _lines(f"{name}.{public}", getattr(module, public))


def _names(module: Any) -> list[str]:
    if (listed := getattr(module, "__all__", None)) is not None:
        return list(listed)
    found = vars(module).items()
    return [
        name for name, value in found if not name.startswith("_") and _is_ours(value) and inspect.isclass(value)
    ] + [name for name, value in found if not name.startswith("_") and _is_ours(value) and inspect.isfunction(value)]


def _is_ours(value: Any) -> bool:
    return str(getattr(value, "__module__", "")).startswith("lmms_eval")


def _lines(path: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        yield from _class_lines(path, value)
    elif callable(value):
        yield f"{path}{_signature(value)}"
    else:
        yield path


def _class_lines(path: str, kind: type) -> Iterator[str]:
    bases = ", ".join(base.__name__ for base in kind.__bases__ if _is_ours(base))
    ends = f" exit code {kind.exit_code}" if isinstance(getattr(kind, "exit_code", None), int) else ""
    yield f"{path}{_signature(kind)}" + (f" of {bases}" if bases else "") + ends
    if dataclasses.is_dataclass(kind):
        yield from (f"{path}.{item.name}: {item.type}" for item in dataclasses.fields(kind) if item.name[0] != "_")
    for name in sorted({name for one in kind.__mro__ if _is_ours(one) for name in vars(one)}):
        member = inspect.getattr_static(kind, name)
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            yield f"{path}.{name}"
        elif isinstance(member, classmethod | staticmethod) or inspect.isfunction(member):
            yield f"{path}.{name}{_signature(getattr(kind, name))}"


def _signature(value: Any) -> str:
    try:
        return re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(value)))
    except (TypeError, ValueError):
        return "(...)"


def _schema_lines(name: str) -> Iterator[str]:
    schema = json.loads(schema_file(name).read_text(encoding="utf-8"))
    schema = schema["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    required = set(schema["required"])
    yield from (f"key {name}.{key}{'' if key in required else ' (optional)'}" for key in sorted(schema["properties"]))


if __name__ == "__main__":
    LIST.write_text(api_text(), encoding="utf-8")
    print(LIST)
