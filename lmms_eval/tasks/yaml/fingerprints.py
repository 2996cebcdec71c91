"""Hashes that show whether a task is the same as in an earlier run."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from lmms_eval.tasks.yaml.functions import FunctionRef
from lmms_eval.utils.files import StatedPath

MAX_FILES = 256
"""Most files of one folder or pattern that a fingerprint covers, by name."""
MAX_BYTES = 256 << 10
"""Larger files of a folder or pattern are not hashed: they hold data, which has its own identity."""
MAX_HASHED = 16 << 20
"""For a larger file that is named directly, only the size, the beginning and the end are hashed."""

_PACKAGE = str(Path(__file__).resolve().parents[2])
_TASKS = f"{_PACKAGE}/tasks/"
_SHARED = (f"{_TASKS}_task_utils/", f"{_PACKAGE}/metrics/", f"{_PACKAGE}/filters/")
"""Modules that benchmarks share for scoring. The rest changes only with the version, which is hashed too."""
_MACHINERY = frozenset({"_task_utils", "controls", "data", "yaml"})
"""Packages in the folder of the benchmarks that are not benchmarks."""
_SITE = re.compile(r"(?P<root>.*/(?:site|dist)-packages/[^/]+)(?:/.*)?")
_STANDARD = str(Path(sysconfig.get_path("stdlib")).resolve())
_REST = r"[^\n;#]*"
_IMPORT = re.compile(
    # Possessive quantifiers avoid backtracking over runs of blanks.
    r"(?:^|[;:])[ \t]*+(?:"
    r"from[ \t]++(?P<source>[ \t.]*+(?:(?!import\b)\w[\w.]*+)?+)[ \t]*+import\b[ \t]*+"
    rf"(?P<names>\([^)]{{0,20000}}\)|{_REST})"
    rf"|import[ \t]++(?P<modules>{_REST}))",
    re.MULTILINE,
)
_NAME = re.compile(r"(?<![\w.])(?!as\b)[\w.]+")
_ALIAS = re.compile(r"\bas[ \t]+\w+")
_COMMENT = re.compile(r"#[^\n]*")
_LITERAL = re.compile(r"\"([^\"\n]{1,200})\"|'([^'\n]{1,200})'")
_FIELD = re.compile(r"\{[^{}]*\}|%\(\w+\)[a-z]|%[sd]")
_ENDING = re.compile(r"\.\w[^/]*$")
_UP = re.compile(r"\.\.|parent\.parent|parents\b|dirname\(\s*(?:os\.path\.)?dirname")
_NOT_CODE = re.compile(
    r"README.*|.*\.pyc|.*\.log|.*_samples_.*\.jsonl|.*_results\.json|\..*"
    r"|.*\.(?:py|png|jpe?g|gif|webp|bmp|tiff?|mp4|avi|mkv|mov|webm|wav|mp3|flac|ogg|parquet|arrow|zip|tar|gz|npy|npz)",
    re.IGNORECASE,
)
"""Files of a folder or pattern that are not hashed: modules, cards, outputs of runs, media and data."""


def absolute_paths(kwargs: Mapping[str, Any] | None) -> Any:
    """Resolve data paths against the folder of the file that states them, if they exist there."""

    def absolute(value: Any) -> Any:
        if isinstance(value, StatedPath):
            return str(value.in_folder) if value.in_folder.exists() else str(value)
        if isinstance(value, Mapping):
            return {key: absolute(item) for key, item in value.items()}
        return [absolute(item) for item in value] if isinstance(value, list) else value

    return absolute(kwargs)


def hash_of_text(text: str) -> str:
    """Compute the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def hash_of_functions(values: Any, stated: Any = None, is_scoring: bool = False) -> str:
    """Compute the hash of the code behind functions. Other values are part of the configuration.

    The code is every module that defines one of the functions, and every module of the task that these import, directly
    or through others. It includes every file of their folders that they name: by a literal (``"prompt.txt"``), by a
    literal with fields (``f"prompts/{lang}.txt"``), or by the name of a folder, whose files are then all included.
    Nothing is imported or executed.

    For a function of an installed package, only that package is hashed. For a function of this package, only the
    benchmark's own folder is, and for scoring also the modules that benchmarks share. (The version is in the key of
    a run's scores, since answers outlive an update.)

    Args:
        values: functions, or mappings and lists of functions.
        stated: the same values as written in the YAML file; its texts may name files too.
        is_scoring: the functions score answers.
    """
    starts = frozenset(_modules_of(values)) | frozenset(_modules_of(stated))
    if not starts:
        return hash_of_text("")
    texts = (leaf for leaf in _leaves(stated) if isinstance(leaf, str) and len(leaf) <= 200)
    literals = frozenset[str]() if all(map(_is_packaged, starts)) else frozenset(texts)
    return _Code(is_scoring, literals).digest(starts)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _modules_of(value: Any) -> Iterator[str]:
    """Yield the files of the modules that define functions, and of the modules that YAML names."""
    for leaf in _leaves(value):
        found = None
        if isinstance(leaf, FunctionRef):
            module = leaf.name.rpartition(".")[0]
            beside = os.path.join(os.path.dirname(leaf.file), *module.split(".")) + ".py"
            found = _real(beside) if os.path.isfile(beside) else _file_of(module)
        elif callable(leaf):
            found = _file_of(getattr(getattr(leaf, "func", leaf), "__module__", "") or "")
        if found is not None:
            yield found


_real = lru_cache(maxsize=8192)(os.path.realpath)


def _file_of(module: str) -> str | None:
    """Find the file of an imported module."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return _real(file) if file and file.endswith(".py") and os.path.isfile(file) else None


def _is_packaged(path: str) -> bool:
    return path.startswith(f"{_PACKAGE}/")


def _installed_root(path: str) -> str | None:
    """Find the outermost package (or module) of an installed file; ``None`` for other files."""
    if (site := _SITE.fullmatch(path)) is not None:
        return site["root"]
    return _STANDARD if path.startswith(f"{_STANDARD}/") else None


class _Module(Struct, frozen=True):
    """The parts of a module's text that matter for its hash."""

    stamp: tuple[int, int]
    digest: str
    imports: tuple[tuple[str, tuple[str, ...]], ...]
    """Module names, with leading dots, each with the names imported from it."""
    literals: frozenset[str]
    looks_up: bool
    """Whether the module may read from the folder above its own."""


_MODULES: dict[str, _Module] = {}
_DIGESTS: dict[tuple[Any, ...], tuple[dict[str, Any], str]] = {}
"""Digests with the files that were read for them, for tasks that share code."""


class _Code:
    """The modules and files behind some functions."""

    def __init__(self, is_scoring: bool, literals: frozenset[str]) -> None:
        self._is_scoring, self._literals = is_scoring, literals

    def digest(self, starts: frozenset[str]) -> str:
        """Hash the contents, independently of the location of the folders."""
        key = (starts, self._is_scoring, self._literals)
        if (known := _DIGESTS.get(key)) is not None and all(_stamp(path) == was for path, was in known[0].items()):
            return known[1]
        modules = self._reached(starts)
        files, folders = self._named(modules)
        found = hashlib.sha256()
        for digest in sorted({module.digest for module in modules.values()}):
            found.update(digest.encode())
        for name, content in sorted({(os.path.basename(path), _content(path)) for path in files}):
            found.update(f"\0{name}\0{content}".encode("utf-8", "surrogatepass"))
        # This package does not change during the process.
        seen = {path: _stamp(path) for path in (*modules, *files, *folders) if not _is_packaged(path)}
        _DIGESTS[key] = seen, found.hexdigest()
        return found.hexdigest()

    def _reached(self, starts: frozenset[str]) -> dict[str, _Module]:
        found: dict[str, _Module] = {}
        waiting = list(starts)
        homes = tuple(home for start in starts if (home := _home(start)))
        while waiting:
            path = waiting.pop()
            if path not in found and (module := _module(path)) is not None:
                found[path] = module
                for name, members in module.imports:
                    waiting += [file for file in _imported(name, members, path) if self._counts(file, homes)]
        return found

    def _counts(self, path: str, homes: tuple[str, ...]) -> bool:
        if path.startswith(homes):
            return True
        if _is_packaged(path):
            # A benchmark's module stays the benchmark's own, even if another benchmark imports it.
            is_shared = path.startswith(_SHARED) or bool(_home(path))
            return self._is_scoring and is_shared
        return _installed_root(path) is None

    def _named(self, modules: Mapping[str, _Module]) -> tuple[set[str], set[str]]:
        """Find the files that the modules name, and the folders that were searched."""
        files: set[str] = set()
        folders: set[str] = set()
        for path, module in modules.items():
            folder = os.path.dirname(path)
            if _is_packaged(path):  # no patterns: files change only with the version
                named = (f"{folder}/{literal}" for literal in module.literals if "." in literal)
                files.update(file for file in named if not file.endswith(".py") and os.path.isfile(file))
                continue
            for place in (folder, os.path.dirname(folder)) if module.looks_up else (folder,):
                for literal in module.literals | self._literals:
                    files.update(_files(place, literal, folders))
        return files.difference(modules), folders


def _home(start: str) -> str:
    """Find the folder whose code is hashed if a module imports it; empty if there is no such folder."""
    if not _is_packaged(start):
        root = _installed_root(start)
        return f"{root}/" if root else ""
    folder, slash, _ = start.removeprefix(_TASKS).partition("/")
    return f"{_TASKS}{folder}/" if start.startswith(_TASKS) and slash and folder not in _MACHINERY else ""


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


def _module(path: str) -> _Module | None:
    stamp = _stamp(path)
    if stamp is None:
        return None
    known = _MODULES.get(path)
    if known is not None and known.stamp == stamp:
        return known
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    literals = frozenset(first or second for first, second in _LITERAL.findall(text))
    module = _Module(
        stamp, hash_of_text(text), tuple(_imports(text)), frozenset(filter(_may_be_path, literals)),
        bool(_UP.search(text)),
    )  # fmt: skip
    _MODULES[path] = module
    return module


def _imports(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the names in import statements, at any depth. A statement inside a string counts too, which is harmless."""
    for match in _IMPORT.finditer(text.replace("\\\n", " ")):
        if source := "".join((match["source"] or "").split()):
            names = _ALIAS.sub("", _COMMENT.sub("", match["names"]))
            yield source, tuple(_NAME.findall(names))
        elif match["modules"]:
            for name in _NAME.findall(_ALIAS.sub("", match["modules"])):
                yield name, ()


def _imported(name: str, members: Sequence[str], by: str) -> Iterator[str]:
    """Yield the files that an import may load, found by path or among the imported modules.

    An absolute name is searched in the folder of the module and in those above it, because task code puts these on the
    search path. ``lmms_eval.tasks.X`` is also searched as ``X``, where folders of included trees are found.
    """
    stem = name.lstrip(".")
    parts = [part for part in stem.split(".") if part]
    if name.startswith("."):
        folder = by
        for _ in range(len(name) - len(stem)):
            folder = os.path.dirname(folder)
        yield from _in_folder("/".join((folder, *parts)), members)
        return
    if not parts or parts[0] in sys.stdlib_module_names:
        return
    for module in (stem, *(f"{stem}.{member}" for member in members)):
        if (file := _file_of(module)) is not None:
            yield file
    if _is_packaged(by):
        if parts[0] == "lmms_eval":
            yield from _in_folder("/".join((os.path.dirname(_PACKAGE), *parts)), members)
        return
    shapes = [parts, *([parts[2:]] if parts[:2] == ["lmms_eval", "tasks"] and parts[2:] else [])]
    for above in Path(by).parents[:6]:
        for shape in shapes:
            yield from _in_folder("/".join((str(above), *shape)), members)


def _in_folder(place: str, members: Sequence[str]) -> Iterator[str]:
    """Yield the files of a module or package at a path without extension, and of its submodules with these names."""
    files = [f"{place}.py"]
    if os.path.isdir(place):
        files += [f"{place}/__init__.py"]
        files += [file for one in members for file in (f"{place}/{one}.py", f"{place}/{one}/__init__.py")]
    yield from (_real(file) for file in files if os.path.isfile(file))


def _may_be_path(literal: str) -> bool:
    """Return whether a literal could be a path below a folder: neither prose nor an absolute path."""
    pattern = _FIELD.sub("*", literal)
    if not pattern.strip("./* ") or pattern.startswith(("/", "~", " ", "-")) or "://" in pattern or "\\" in pattern:
        return False
    return "*" not in pattern or bool(_ENDING.search(pattern))


def _files(folder: str, literal: str, folders: set[str]) -> Iterator[str]:
    """Yield the files that a literal names below a folder: one file, all of a folder, or all that match a pattern."""
    pattern = _FIELD.sub("*", literal)
    try:
        if "*" not in pattern and os.path.isfile(f"{folder}/{pattern}"):
            yield _real(f"{folder}/{pattern}")
            return
        found: list[Path] = []
        if "*" in pattern:
            folders.add(folder)
            found = sorted(Path(folder).glob(pattern))
        elif _is_folder_of_code(folder, pattern):
            folders.add(f"{folder}/{pattern}")
            found = sorted(Path(folder, pattern).iterdir())
        counted = (file for file in found if not _NOT_CODE.fullmatch(file.name) and file.is_file())
        yield from (_real(str(file)) for file in islice(counted, MAX_FILES) if file.stat().st_size <= MAX_BYTES)
    except (OSError, ValueError, NotImplementedError):  # name too long, zero byte, invalid pattern
        return


def _is_folder_of_code(folder: str, name: str) -> bool:
    """Return whether a name is a subfolder that is neither an environment nor a cache."""
    place = _real(f"{folder}/{name}")
    if not os.path.isdir(place) or place.endswith("__pycache__") or _installed_root(f"{place}/_") is not None:
        return False
    return not f"{_real(folder)}/".startswith(f"{place}/")


def _content(path: str) -> str:
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size <= MAX_HASHED:
                return hashlib.sha256(file.read()).hexdigest()
            found = hashlib.sha256(str(size).encode() + file.read(MAX_HASHED // 2))
            file.seek(-MAX_HASHED // 2, os.SEEK_END)
            found.update(file.read())
            return found.hexdigest()
    except OSError:
        return ""
