"""Modules of plugin packages under the family's name, ``lmms_eval.models.simple.NAME`` and the like.

Model files of the family import their neighbours by that name. What this package has wins; a module that it lacks, and
a name that a module of its own lacks, is the plugin's ``PACKAGE.models.simple.NAME``. Both names are one module.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

_HOME = "lmms_eval.models."
_FOLDER = Path(__file__).resolve().parent


class _Finder:
    """A finder of Python's ``sys.meta_path``."""

    def __init__(self) -> None:
        self.packages: list[str] = []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(_HOME):
            return None
        spec = PathFinder.find_spec(fullname, path) if _is_ours(fullname) else None
        twins = self.twins(fullname)
        if spec is not None:
            if spec.loader is not None and spec.submodule_search_locations is None and any(twins):
                spec.loader = _Supplied(spec.loader, self.twins)
            return spec
        twin = next(twins, None)
        return None if twin is None else ModuleSpec(fullname, _SameModule(twin), is_package=_is_package(twin))

    def twins(self, fullname: str) -> Iterator[str]:
        """Names of the plugins' modules that a name may mean."""
        for package in self.packages:
            name = f"{package}.models.{fullname.removeprefix(_HOME)}"
            try:
                if name in sys.modules or importlib.util.find_spec(name) is not None:
                    yield name
            except Exception:  # noqa: BLE001 - a plugin that cannot be imported is told where it is loaded, and has none
                continue


class _SameModule(Loader):
    """Gives a module that has another name already."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._own_spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:  # noqa: ARG002 - the interface
        module = importlib.import_module(self._name)
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._own_spec  # the import system has put that of the other name there


class _Supplied(Loader):
    """Runs a module of this package, which then asks the plugins for names that it lacks."""

    def __init__(self, own: Any, twins: Callable[[str], Iterator[str]]) -> None:
        self._own, self._twins = own, twins

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._own.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        self._own.exec_module(module)
        _supply(module, self._twins)


def _supply(module: ModuleType, twins: Callable[[str], Iterator[str]]) -> None:
    before: Callable[[str], Any] | None = vars(module).get("__getattr__")

    def attribute(name: str) -> Any:
        if not name.startswith("__"):
            for twin in twins(module.__name__):
                found = vars(importlib.import_module(twin))
                if name in found:
                    return found[name]
        if before is not None:
            return before(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    vars(module)["__getattr__"] = attribute


def _is_ours(fullname: str) -> bool:
    place = _FOLDER.joinpath(*fullname.removeprefix(_HOME).split("."))
    return place.is_dir() or place.with_suffix(".py").is_file()


def _is_package(name: str) -> bool:
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.submodule_search_locations is not None


_FINDER = _Finder()


def supply_modules(package: str) -> None:
    """Let a plugin package supply modules and names that ``lmms_eval.models`` lacks; a later package comes first."""
    _FINDER.packages = [package, *(known for known in _FINDER.packages if known != package)]
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
        for name, module in list(sys.modules.items()):
            if name.startswith(_HOME) and not hasattr(module, "__path__"):
                _supply(module, _FINDER.twins)
