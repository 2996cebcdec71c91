"""Write pages from declarations: keys of every file, the Python API from its docstrings."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import schemas
import sources

from lmms_eval.errors import LmmsEvalError

_API = {
    "evaluator": "Evaluating",
    "results": "Reading results",
    "entrypoints": "Server and clients",
    "api": "Contracts for models and tasks",
    "errors": "Errors",
}
"""Modules of docs/api.md. Each gets a page."""


def write(source: Path) -> list[Path]:
    """Write the pages into the assembled tree."""
    folder = source / "reference"
    folder.mkdir(parents=True, exist_ok=True)
    schemas.write(folder / "schemas.md")
    pages = [folder / f"{name}.rst" for name in _API]
    for page, (name, caption) in zip(pages, _API.items(), strict=True):
        page.write_text("\n".join(_module(f"lmms_eval.{name}", caption)), encoding="utf-8")
    (folder / "python.rst").write_text("\n".join(_contents()), encoding="utf-8")
    return [folder / "schemas.md", folder / "python.rst", *pages]


def public_names(module: str) -> list[str]:
    """Return the public names of a module, in the order of its source."""
    stub = sources.ROOT.joinpath(*module.split("."), "__init__.pyi")
    if stub.is_file():
        imports = [
            node for node in ast.parse(stub.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)
        ]
        return [alias.name for node in imports for alias in node.names]
    found = vars(importlib.import_module(module))
    return list(found.get("__all__", ())) or [name for name, value in found.items() if _is_offered(name, value)]


def _is_offered(name: str, value: object) -> bool:
    is_named = inspect.isclass(value) or inspect.isfunction(value)
    return is_named and not name.startswith("_") and value.__module__.startswith("lmms_eval")


def _titled(title: str, text: str) -> list[str]:
    return [title, "=" * len(title), "", text, ""]


def _contents() -> list[str]:
    lines = _titled("Python API", "Names that keep their meaning between releases of one major number.")
    return [*lines, ".. toctree::", "", *(f"   {name}" for name in _API), ""]


def _module(module: str, caption: str) -> list[str]:
    lines = _titled(caption, f"Names of ``{module}``.")
    for name in public_names(module):
        value = getattr(importlib.import_module(module), name)
        if not inspect.isclass(value):
            lines += [f".. autofunction:: {module}.{name}", ""]
            continue
        lines += [f".. autoclass:: {module}.{name}", "   :members:", "   :show-inheritance:", ""]
        if issubclass(value, LmmsEvalError):
            lines += [f"   The command line ends with exit code {value.exit_code}.", ""]
    return lines
