"""The modules at the family's paths, which task files and plugins import: they offer names of other modules.

No file exists at those paths. ``compat/aliases.tsv`` lists them: the path, a module and the names that it offers there,
with paths below ``lmms_eval``; ``NAME=ATTRIBUTE`` gives an attribute another name, and a path without a module is a
package of others. A module is built when it is first imported, and looks a name up when the name is first used.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object  # importing importlib.abc takes as long as all else that ``import lmms_eval`` does

_PACKAGE = __name__.partition(".")[0]
_FOLDER = os.path.dirname(os.path.abspath(__file__))
_TABLE = os.path.join(_FOLDER, "compat", "aliases.tsv")
Homes = Mapping[str, tuple[str, str]]
"""The module and the attribute behind each name of a module."""


class _AliasFinder:
    """A finder of Python's ``sys.meta_path``; it comes first, so that a left-over folder hides no path."""

    def __init__(self) -> None:
        self._table: dict[str, dict[str, tuple[str, str]]] = {}

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(f"{_PACKAGE}."):
            return None
        table = self._table or self._read()
        if fullname not in table:
            return None
        spec = ModuleSpec(fullname, _AliasLoader(table[fullname]), origin=_TABLE)
        spec.has_location = True  # a name that is missing is then reported as one of this package
        submodules = [name.removeprefix(f"{fullname}.") for name in table if name.startswith(f"{fullname}.")]
        if submodules:
            folder = os.path.join(_FOLDER, *fullname.split(".")[1:])
            spec.submodule_search_locations = [folder]
            sys.path_importer_cache[folder] = _AliasFolder(folder, submodules)
        return spec

    def _read(self) -> dict[str, dict[str, tuple[str, str]]]:
        table: dict[str, dict[str, tuple[str, str]]] = {}
        with open(_TABLE, encoding="utf-8") as file:
            for line in file.read().splitlines()[1:]:
                path, home, names = line.split("\t")
                homes = table.setdefault(f"{_PACKAGE}.{path}", {})
                for name, _, attribute in (entry.partition("=") for entry in names.split()):
                    homes[name] = f"{_PACKAGE}.{home}", attribute or name
        self._table = table
        return table


class _AliasLoader(Loader):
    """Builds a module that offers names of other modules."""

    def __init__(self, homes: Homes) -> None:
        self._homes = homes

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:  # noqa: ARG002 - the interface
        return None  # Python creates it

    def exec_module(self, module: ModuleType) -> None:
        def attribute(name: str) -> Any:
            if name not in self._homes:
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            home, original = self._homes[name]
            value = getattr(importlib.import_module(home), original)
            setattr(module, name, value)
            return value

        vars(module).update(
            __doc__="Names that task files and plugins of the family import from here.",
            __all__=sorted(name for name in self._homes if not name.startswith("_")),
            __getattr__=attribute,
            __dir__=lambda: sorted({*vars(module), *self._homes}),
        )


class _AliasFolder:
    """The search path of a package of aliases: ``pkgutil`` lists them, and a file in the folder can be imported."""

    def __init__(self, folder: str, submodules: Sequence[str]) -> None:
        self._submodules = submodules
        self.find_spec = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec

    def iter_modules(self, prefix: str = "") -> Iterator[tuple[str, bool]]:
        return ((f"{prefix}{name}", False) for name in self._submodules)


_FINDER = _AliasFinder()
find_alias = _FINDER.find_spec
"""Return the specification of the module at a path of the family by its full name, or ``None``."""


def install() -> None:
    """Make the modules at the family's paths importable."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
