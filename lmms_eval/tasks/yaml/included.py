"""Task folders below ``--include_path`` under the family's name, ``lmms_eval.tasks.FOLDER.module``.

Python asks the finder here after its own, so that what the package has wins; a module that a packaged folder does not
have is found in the included folder of the same name.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

_HOME = "lmms_eval.tasks."


class _Root:
    """An included folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def folders(self) -> dict[str, list[Path]]:
        """The folders below by their name, those that lie less deep first."""
        found: dict[str, list[Path]] = {}
        for folder, names, _files in os.walk(self.folder):
            names[:] = sorted(name for name in names if not name.startswith("."))
            for name in names:
                found.setdefault(name, []).append(Path(folder, name))
        return {name: sorted(paths, key=lambda path: len(path.parts)) for name, paths in found.items()}

    def places(self, parts: Sequence[str]) -> Iterator[Path]:
        """Paths, without an ending, that the parts of a name may mean."""
        first, *rest = parts
        yield self.folder.joinpath(*parts)
        if self.folder.name == first:
            yield self.folder.joinpath(*rest)
        for folder in self.folders.get(first, ()):
            yield folder.joinpath(*rest)

    def name_of(self, file: Path) -> str | None:
        """The name under which a file of the folder is imported."""
        if not file.is_relative_to(self.folder):
            return None
        parts = file.relative_to(self.folder).with_suffix("").parts
        return _HOME + ".".join(parts if len(parts) > 1 else (self.folder.name, *parts))


class _IncludedFinder:
    """A finder of Python's ``sys.meta_path``."""

    def __init__(self) -> None:
        self.roots: list[_Root] = []

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(_HOME):
            return None
        parts = fullname.removeprefix(_HOME).split(".")
        places = [place for root in self.roots for place in root.places(parts)]
        own = {root.folder for root in self.roots}
        for place in places:
            package, module = place / "__init__.py", place.with_name(f"{place.name}.py")
            if package.is_file():
                return spec_from_file_location(fullname, package, submodule_search_locations=[str(place)])
            if place not in own and module.is_file():
                return spec_from_file_location(fullname, module)
        folders = [str(place) for place in dict.fromkeys(places) if place.is_dir()]
        if not folders:
            return None
        spec = ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = folders
        return spec


_FINDER = _IncludedFinder()


def include(folder: Path) -> None:
    """Make the task folders below a folder importable; a later folder is looked at first.

    The folder may also be such a task folder itself, or a source tree that has them in ``lmms_eval/tasks``.
    """
    own = folder.resolve()
    for root in (own, own / "lmms_eval" / "tasks"):
        if root.is_dir():
            _FINDER.roots = [_Root(root), *(known for known in _FINDER.roots if known.folder != root)]
    if _FINDER not in sys.meta_path:
        sys.meta_path.append(_FINDER)


def included_folders() -> list[str]:
    """The folders of ``include``, in the order in which another process gets the same state from them."""
    return [str(root.folder) for root in reversed(_FINDER.roots)]


def included_names(file: Path) -> Iterator[str]:
    """Names by which a file below an included folder may be imported, where nothing of another place has them."""
    for root in _FINDER.roots:
        if name := root.name_of(file):
            yield name
