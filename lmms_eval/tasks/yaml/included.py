"""Task folders below ``--include_path`` and of packs, under the name that their code imports them by.

This is ``lmms_eval.tasks.FOLDER.module``, or ``PACKAGE.tasks.FOLDER.module`` in the pack of another package. Code of
this package imports by Python's rules, so its own modules win over those of included folders. Code below an included
folder finds its own tree first, even if the package has a module of the same name, because its import statements go
through ``_OwnImports``. If the package has already taken a module's name, the module of the tree is imported as
``included_HASH.FOLDER.module``.

Code of another package's pack never imports that package, even if it is installed: its task folders are those of the
pack, and its other modules are those of ``lmms_eval.compat.PACKAGE``.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from lmms_eval.aliases import find_alias

_PACKAGE = "lmms_eval"
_HOME = f"{_PACKAGE}.tasks."
LM_EVAL = "lm_eval"
"""Package of lm-eval. The tasks of its packs follow its rules (``tasks.lm_eval``)."""
_ROOT_PACKAGE = Path(__file__).resolve().parents[2]
_INIT = "__init__.py"


class _Root:
    """An included folder.

    Args:
        folder: its path.
        is_deep: a name may also refer to a folder further below.
        package: the package whose ``tasks`` it is.
        is_trusted: its code may run.
    """

    def __init__(self, folder: Path, is_deep: bool, package: str, is_trusted: bool) -> None:
        self.folder, self.is_deep, self.package, self.is_trusted = folder, is_deep, package, is_trusted
        self._prefix = os.path.join(folder, "")
        self.alias = f"included_{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"

    def contains(self, place: str) -> bool:
        """Return whether an entry of an import path is in the folder. Every import asks this, so it compares texts."""
        return os.path.join(place.replace("//", "/"), "").startswith(self._prefix)

    @property
    def is_ours(self) -> bool:
        """Whether its code imports itself from this package."""
        return self.package == _PACKAGE

    @cached_property
    def folders(self) -> dict[str, list[Path]]:
        """The folders below, by name, with shallower folders first."""
        found: dict[str, list[Path]] = {}
        for folder, names, _files in os.walk(self.folder) if self.is_deep else ():
            names[:] = sorted(name for name in names if not name.startswith("."))
            for name in names:
                found.setdefault(name, []).append(Path(folder, name))
        return {name: sorted(paths, key=lambda path: len(path.parts)) for name, paths in found.items()}

    def places(self, parts: Sequence[str]) -> Iterator[Path]:
        """Return the paths, without extension, that the parts of a name may refer to."""
        first, *rest = parts
        yield self.folder.joinpath(*parts)
        if self.folder.name == first:
            yield self.folder.joinpath(*rest)
        for folder in self.folders.get(first, ()):
            yield folder.joinpath(*rest)

    def find(self, parts: Sequence[str]) -> Path | None:
        """Return the module file or folder of the parts of a name."""
        places = list(self.places(parts))
        files = (_module_file(place, self.folder) for place in places)
        return next((file for file in files if file), None) or next((item for item in places if item.is_dir()), None)

    def parts_of(self, path: Path) -> tuple[str, ...]:
        """Return the parts of the import name of a file or folder below."""
        own = path.parent if path.name == _INIT else path
        parts = own.relative_to(self.folder).with_suffix("").parts
        return parts if len(parts) > 1 or (own.is_dir() and parts) else (self.folder.name, *parts)


def _module_file(place: Path, root: Path) -> Path | None:
    package, module = place / _INIT, place.with_name(f"{place.name}.py")
    if package.is_file():
        return package
    return module if place != root and module.is_file() else None


class _IncludedFinder:
    """A ``sys.meta_path`` finder for the modules of included trees. It gives them their own import function."""

    def __init__(self) -> None:
        self.roots: list[_Root] = []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if find_alias(fullname) is not None:
            return None
        space = self._space(fullname)
        if space is None and not any(root.contains(entry) for entry in path or () for root in self.roots):
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is None and space is not None:
            spec = _spec_below(fullname, *space)
        return with_own_imports(spec)

    def above(self, path: Path) -> list[_Root]:
        """Return the included folders that contain a path, the nearest first."""
        found = [root for root in self.roots if path.is_relative_to(root.folder)]
        return sorted(found, key=lambda root: len(root.folder.parts), reverse=True)

    def _space(self, fullname: str) -> tuple[tuple[str, ...], list[_Root]] | None:
        """Return the parts of a name below its prefix, and the trees to search for it."""
        if fullname.startswith(_HOME):
            return tuple(fullname.removeprefix(_HOME).split(".")), [root for root in self.roots if root.is_ours]
        alias, *parts = fullname.split(".")
        roots = [root for root in self.roots if root.alias == alias]
        return (tuple(parts), roots) if roots else None


def _spec_below(fullname: str, parts: tuple[str, ...], roots: Sequence[_Root]) -> ModuleSpec | None:
    """Return the spec of a module of the trees. Folders without ``__init__.py`` form one namespace."""
    if not parts:
        return _namespace(fullname, [str(root.folder) for root in roots])
    places = [(place, root) for root in roots for place in root.places(parts)]
    for place, root in places:
        if file := _module_file(place, root.folder):
            locations = [str(place)] if file.name == _INIT else None
            return spec_from_file_location(fullname, file, submodule_search_locations=locations)
    folders = [str(place) for place in dict.fromkeys(place for place, _ in places) if place.is_dir()]
    return _namespace(fullname, folders) if folders else None


def _namespace(fullname: str, folders: list[str]) -> ModuleSpec:
    spec = ModuleSpec(fullname, None, is_package=True)
    spec.submodule_search_locations = folders
    return spec


class _OwnImports(SourceFileLoader):
    """Runs a module of a tree so that its import statements find the tree first."""

    def get_code(self, fullname: str) -> CodeType:
        """Compile the source. Bytecode files ignore an edit of the same length within the same second."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def exec_module(self, module: ModuleType) -> None:
        own = {**vars(builtins), "__import__": _importer(Path(self.path))}
        vars(module)["__builtins__"] = own
        super().exec_module(module)


def with_own_imports(spec: ModuleSpec | None) -> ModuleSpec | None:
    """Give the spec of a tree's module its own loader; return any other spec unchanged."""
    if spec is not None and type(spec.loader) is SourceFileLoader and spec.origin and _FINDER.above(Path(spec.origin)):
        spec.loader = _OwnImports(spec.loader.name, spec.loader.path)
    return spec


def _importer(file: Path) -> Any:
    """Return the ``__import__`` for the code of a file."""
    package = package_of(file)

    def load(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if level == 0:
            if fromlist and f"{name}." == _HOME and "*" not in fromlist:
                return _View(name, file)
            found = own_name(name, file)
            if found != name:
                return _imported(found, name, file, fromlist)
            if name == package != _PACKAGE:
                return _View(name, file)
        return builtins.__import__(name, globals, locals, fromlist or (), level)

    return load


def _imported(found: str, name: str, file: Path, fromlist: Sequence[str] | None) -> Any:
    """Import a tree's module in place of ``name``. Names that it lacks are taken from the package's module."""
    if not fromlist:
        module = importlib.import_module(found)
        if name in _STAND_INS:
            return _around(name, module)
        return _View(name.partition(".")[0], file) if "." in name else module
    module = builtins.__import__(found, None, None, fromlist, 0)
    absent = [part for part in fromlist if part != "*" and not hasattr(module, part)]
    for part in absent if hasattr(module, "__path__") and name.startswith(_HOME) else ():
        if find_spec(f"{name}.{part}") is not None:
            setattr(module, part, importlib.import_module(f"{name}.{part}"))
    return module


class _Package(ModuleType):
    """A package with some modules of its own; its other names are those of the installed package."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


def _around(name: str, module: ModuleType) -> ModuleType:
    """Return the top package of a dotted name, with ``module`` in place of the installed one of that name."""
    parents = name.split(".")
    while len(parents) > 1:
        part = parents.pop()
        package = ".".join(parents)
        above = _Package(package)
        setattr(above, part, module)
        module = above
    return module


class _View(ModuleType):
    """``lmms_eval`` or ``lmms_eval.tasks`` as the code of a tree sees it; the same of another package."""

    def __init__(self, name: str, file: Path) -> None:
        super().__init__(name)
        self.__file = file

    def __getattr__(self, part: str) -> Any:
        name = f"{self.__name__}.{part}"
        if "." not in self.__name__ and part == "tasks":
            return _View(name, self.__file)
        found = own_name(name, self.__file)
        if found != name:
            return importlib.import_module(found)
        return getattr(builtins.__import__(self.__name__, None, None, (part,), 0), part)  # also imports a submodule


_FINDER = _IncludedFinder()


def include(folder: Path, is_deep: bool = True, package: str = _PACKAGE, is_trusted: bool = True) -> None:
    """Make the task folders below a folder importable. Folders that were included later are searched first.

    The folder may also be a task folder itself, or a source tree with task folders in ``lmms_eval/tasks``.

    Args:
        folder: its path.
        is_deep: look for task folders at any depth, not only in the folder itself.
        package: the package whose ``tasks`` it is.
        is_trusted: its code may run.
    """
    own = folder.resolve()
    for root in (own, own / _PACKAGE / "tasks"):
        if root.is_dir() and not root.is_relative_to(_ROOT_PACKAGE):
            others = [known for known in _FINDER.roots if known.folder != root]
            _FINDER.roots = [_Root(root, is_deep, package, is_trusted), *others]
    if _FINDER.roots and _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    own_name.cache_clear()
    dotted_name.cache_clear()


def include_if_new(folder: Path) -> None:
    """Include a folder without its subfolders, unless it is inside an included one."""
    if not _FINDER.above(folder.resolve()):
        include(folder, is_deep=False)


def included_folders() -> list[tuple[str, bool, str, bool]]:
    """Return the arguments of ``include`` that give another process the same state, in order."""
    return [(str(root.folder), root.is_deep, root.package, root.is_trusted) for root in reversed(_FINDER.roots)]


def include_again(folders: Sequence[tuple[str, bool, str, bool]]) -> None:
    """Include the folders that another process returned from ``included_folders``."""
    for folder, is_deep, package, is_trusted in folders:
        include(Path(folder), is_deep, package, is_trusted)


def package_of(file: Path) -> str:
    """Return the package that the code of a file imports itself from, by the included folder that contains it."""
    return next((root.package for root in _FINDER.above(file)), _PACKAGE)


def is_trusted(file: Path) -> bool:
    """Return whether the code that a task file names may run: always, except in packs without the user's consent."""
    return all(root.is_trusted for root in _FINDER.above(file))


@cache
def own_name(name: str, file: Path) -> str:
    """Return the import name of the module that the code of a file calls ``name``.

    Args:
        name: a module's dotted name.
        file: of the code; a file outside included folders imports by Python's rules.
    """
    roots = _FINDER.above(file)
    if roots and not roots[0].is_ours:
        return _name_in_pack(name, file, roots[0])
    parts = name.removeprefix(_HOME).split(".")
    if not name.startswith(_HOME) or _is_helper(parts[0]):
        return name
    for root in roots:
        if path := root.find(parts):
            return dotted_name(path) or name
    return name


_STAND_INS = {
    "evaluate": "evaluate",
    "fuzzywuzzy": "fuzzywuzzy",
    "transformers.data.metrics": "transformers_metrics",
    "transformers.data.metrics.squad_metrics": "transformers_metrics.squad_metrics",
}
"""Modules of ``compat.PACKAGE`` in place of installed ones: these download code, are under the GPL, or newer versions
lack them."""


def _name_in_pack(name: str, file: Path, root: _Root) -> str:
    """Return the import name of the module that the code of another package's pack calls ``name``."""
    top, *parts = name.split(".")
    compat = f"{_PACKAGE}.compat.{root.package}"
    if name in _STAND_INS and find_alias(f"{compat}.{_STAND_INS[name]}") is not None:
        return f"{compat}.{_STAND_INS[name]}"
    if top != root.package:
        beside = file.parent.joinpath(f"{top}.py")  # code relies on the folder of its file
        return f"{root.alias}.{'.'.join(root.parts_of(beside))}" if beside.is_file() and _is_free(top) else name
    if parts[:1] != ["tasks"]:
        return ".".join((compat, *parts))
    return ".".join((root.alias, *parts[1:]))


def _is_free(name: str) -> bool:
    return name not in sys.stdlib_module_names


def _is_helper(part: str) -> bool:
    """Return whether the package has modules of this name outside benchmarks; those always come from the package."""
    place = _ROOT_PACKAGE / "tasks" / part
    is_benchmark = place.is_dir() and not part.startswith("_") and any(place.rglob("*.yaml"))
    is_module = place.is_dir() or place.with_suffix(".py").is_file() or find_alias(f"{_HOME}{part}") is not None
    return is_module and not is_benchmark


@cache
def dotted_name(path: Path) -> str | None:
    """Return the import name of this file (or folder of modules), if Python can import it."""
    own = path.parent if path.name == _INIT else path
    if path.is_relative_to(_ROOT_PACKAGE):
        names = [".".join(own.relative_to(_ROOT_PACKAGE.parent).with_suffix("").parts)]
    else:  # the packages that contain it
        folder, parts = own.parent, [own.stem]
        while (folder / _INIT).is_file():
            parts.insert(0, folder.name)
            folder = folder.parent
        names = [".".join(parts)]
    for root in _FINDER.above(path):
        below = ".".join(root.parts_of(path))
        # The first may already belong to another module.
        names = [*names, f"{_HOME}{below}", f"{root.alias}.{below}"] if root.is_ours else [f"{root.alias}.{below}"]
    return next((name for name in names if _is_of(name, path)), None)


def _is_of(name: str, path: Path) -> bool:
    """Return whether a dotted name refers to a file or folder."""
    parts = name.split(".")
    if len(parts) < 2 or not all(part.isidentifier() for part in parts):
        return False
    try:
        spec = find_spec(name)
    except Exception:  # noqa: BLE001 - a package that cannot be imported: the file is run alone
        return False
    if spec is None:
        return False
    if path.is_dir():
        places = list(spec.submodule_search_locations or ())
        return spec.origin is None and bool(places) and Path(places[0]).resolve() == path
    return bool(spec.origin) and Path(str(spec.origin)).resolve() == path
