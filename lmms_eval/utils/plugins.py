"""Plugins by name or path: packages and modules that bring models and tasks."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from lmms_eval.errors import ModelError
from lmms_eval.utils.installed import absent_name, error_text

MARK = "register_model("
"""Text of a file that registers a model. Of a folder, only such files are imported."""
_INSTALL = "; install it or put its folder on PYTHONPATH"


def is_path(word: str) -> bool:
    """Return whether a plugin is given by its path, not by the name of a module."""
    if word in (".", "..") or word.endswith(".py") or "/" in word or os.sep in word:
        return True
    return Path(word).is_dir() and importlib.util.find_spec(word) is None


def absolute_plugins(words: Sequence[str]) -> tuple[str, ...]:
    """Return the plugins in a form that means the same in every folder."""
    return tuple(str(Path(word).expanduser().resolve()) if is_path(word) else word for word in words)


def plugin_names(words: Sequence[str]) -> tuple[str, ...]:
    """Return the plugins as names to import, and make those given by their path importable.

    A path is a file, a package, or a folder. Of a folder, the files that register a model are taken.

    Raises:
        ModelError: there is no such path, a folder has no model, or the name of a file is taken.
    """
    found = (_modules_at(word) if is_path(word) else [word] for word in words)
    return tuple(dict.fromkeys(name for names in found for name in names))


def _modules_at(word: str) -> list[str]:
    path = Path(word).expanduser().resolve()
    if path.is_file():
        return [_importable(path.parent, path.stem)]
    if not path.is_dir():
        raise ModelError(f"--plugins {word}: there is no such file or folder in {Path.cwd()}")
    if (path / "__init__.py").is_file():
        return [_importable(path.parent, path.name)]
    files = [file for file in sorted(path.glob("*.py")) if MARK in file.read_text(encoding="utf-8", errors="replace")]
    if not files:
        raise ModelError(f'--plugins {word}: no file in {path} registers a model; put @register_model("NAME") above it')
    return [_importable(path, file.stem) for file in files]


def _importable(folder: Path, name: str) -> str:
    """Put a folder at the end of the import path, where it hides nothing, and return the name of its module.

    If the folder is a package, this is the name within the package.
    """
    if (folder / "__init__.py").is_file():
        return f"{_importable(folder.parent, folder.name)}.{name}"
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
        importlib.invalidate_caches()
    spec = importlib.util.find_spec(name) if name.isidentifier() else None
    origin = Path(spec.origin or "").resolve() if spec is not None else None
    if origin is None or not origin.is_relative_to(folder):
        other = "cannot be the name of a module" if origin is None else f"is the name of {origin}"
        raise ModelError(f"--plugins {folder / name}: {name!r} {other}; rename the file")
    return name


def plugin_task_folders(words: Sequence[str]) -> list[Path]:
    """Return the existing folders ``PACKAGE.tasks`` of plugins. Raises ``ModelError`` if one cannot be imported."""
    folders: list[Path] = []
    for package in plugin_names(words):
        try:
            spec = importlib.util.find_spec(f"{package}.tasks")
        except ModuleNotFoundError as error:
            if error.name == f"{package}.tasks":  # the plugin is a module
                continue
            raise plugin_error(package, error) from error
        except Exception as error:  # a plugin's module may raise anything when it is imported
            raise plugin_error(package, error) from error
        if spec is not None and spec.submodule_search_locations:
            folders.extend(Path(location) for location in spec.submodule_search_locations)
    return folders


def plugin_error(package: str, error: Exception) -> ModelError:
    """Return the error about a plugin that cannot be imported."""
    hint = _INSTALL if isinstance(error, ModuleNotFoundError) and not absent_name(error) else ""
    where = f"plugin {package!r} (--plugins, LMMS_EVAL_PLUGINS)"
    return ModelError(f"{where} cannot be imported: {error_text(error)}{hint}")
