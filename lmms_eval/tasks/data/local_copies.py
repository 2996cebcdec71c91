"""``datasets.load_dataset`` for task code: data sets in ``--data_root`` are read from there.

The library's ``load_dataset``, under any name that a module has imported, calls ``load_dataset_builder`` of its own
module. Only that function is replaced while task code runs. In threads without task code it behaves as usual.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from msgspec import Struct

from lmms_eval.errors import DataError
from lmms_eval.tasks.data.locate import SUFFIXES, beside_folders, data_root_folders
from lmms_eval.tasks.data.splits import DataRequest, in_folder

_KEPT = ("cache_dir", "features", "download_config", "download_mode")
"""Arguments that still apply when files are read instead of a repository."""


class LocalCopies(Struct, frozen=True):
    """The data sets below ``--data_root``, for the code of one task."""

    root: str | None
    """``None`` without the option; then nothing is replaced."""
    where: str
    """The task's YAML file."""
    own: str
    """The task's own ``dataset_path``, whose files may be in the folder itself."""

    def reached(self, function: Any) -> Any:
        """Wrap a function of the task so that its data sets are looked up here. Other values are returned unchanged."""
        if self.root is None or not callable(function) or isinstance(function, type):
            return function
        file = getattr(sys.modules.get(getattr(function, "__module__", None) or ""), "__file__", None)
        if not any(map(_names_load_dataset, {Path(self.where).parent, Path(file or self.where).parent})):
            return function

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with _HOOK.installed(self):
                return function(*args, **kwargs)

        return call

    def offered(self) -> AbstractContextManager[None]:
        """Return a context for the task's code outside functions, such as the top level of its modules."""
        if self.root is None or not _names_load_dataset(Path(self.where).parent):
            return nullcontext()
        return _HOOK.installed(self)

    def folder(self, path: str) -> Path | None:
        """Find the copy of a hub repository; ``None`` if there is no copy, or ``path`` is not a repository.

        Raises ``DataError`` if ``--data_root`` is not a folder.
        """
        root = Path(str(self.root)).expanduser()
        found = data_root_folders(root, path, self.where)
        return found[0] if found else root if path == self.own else None


@functools.cache
def _names_load_dataset(folder: Path) -> bool:
    """Return whether a module of a task's folder names ``load_dataset``. If none does, the library is not imported."""
    return any("load_dataset" in file.read_text(encoding="utf-8", errors="replace") for file in folder.glob("*.py"))


_COPIES: ContextVar[LocalCopies | None] = ContextVar("_COPIES", default=None)


class _Hook:
    """Replaces the library's function while any thread runs task code."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._library: Callable[..., Any]

    @contextmanager
    def installed(self, copies: LocalCopies) -> Iterator[None]:
        from datasets import load

        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._library = load.load_dataset_builder
                load.load_dataset_builder = self._builder
        token = _COPIES.set(copies)
        try:
            yield
        finally:
            _COPIES.reset(token)
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    load.load_dataset_builder = self._library

    def _builder(self, path: str, name: str | None = None, **options: Any) -> Any:
        """Make the builder of a local copy, or else the library's builder."""
        from datasets.packaged_modules import _PACKAGED_DATASETS_MODULES

        copies = _COPIES.get()
        if copies is None or path in _PACKAGED_DATASETS_MODULES or Path(path).expanduser().exists():
            return self._library(path, name, **options)  # not a repository that the hub would be asked for
        folder = copies.folder(path)
        if folder is None:
            try:
                return self._library(path, name, **options)
            except Exception as error:  # network, hub, parser and builder errors have no common class
                raise DataError(
                    f"{copies.where}: its code loads the data set {path!r}; --data_root {copies.root} has no copy "
                    f"(a folder {path}, {path.replace('/', '__')} or {path.rpartition('/')[2]}), and from the hub: "
                    f"{type(error).__name__}: {error}"
                ) from error
        if options.get("data_dir"):
            folder /= str(options["data_dir"])
        request = DataRequest(path, name, {"data_files": options.get("data_files")}, copies.where)
        is_beside = folder == Path(str(copies.root)).expanduser() and not request.kwargs["data_files"]
        files = beside_folders(folder, path, name, copies.where) if is_beside else in_folder(folder, request)
        kept = {key: options[key] for key in _KEPT if options.get(key) is not None}
        suffix = next(iter(files.values()))[0].suffix
        kind = SUFFIXES.get(suffix)
        if kind is None:
            raise DataError(f"{folder}: files of type {suffix!r} are not read; use one of {', '.join(SUFFIXES)}")
        if kind == "tsv":
            kind, kept["sep"] = "csv", "\t"
        by_split = {split: [str(file) for file in of_split] for split, of_split in files.items()}
        return self._library(kind, data_files=by_split, **kept)


_HOOK = _Hook()
