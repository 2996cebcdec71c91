"""``!function`` of task YAML, found in the folder of the YAML file, else in an installed module.

A module is loaded once per process. It keeps its dotted name if its folder belongs to an importable package or is below
an included folder; otherwise it gets a name that is unique to its folder.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import importlib
import importlib.util
import random
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec import Struct

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import FunctionError, LmmsEvalError, TaskError
from lmms_eval.tasks.yaml.included import dotted_name, is_trusted, own_name, with_own_imports
from lmms_eval.utils.answer_reading import RUN_SEED
from lmms_eval.utils.installed import error_text, not_part_of_this_version
from lmms_eval.utils.signatures import place_of

_PACKAGE = Path(__file__).parents[2]
_MODULES: dict[Path, ModuleType] = {}
_LOCK = threading.RLock()


class FunctionRef(Struct, frozen=True):
    """A function as a YAML file names it; ``resolve`` imports it."""

    name: str
    """``module.function``, the module relative to the folder of ``file`` or installed."""
    file: str
    """The YAML file that names it."""
    key: str = ""
    """The YAML key of the function, for messages."""

    def __str__(self) -> str:
        return f"<function {self.name}>"

    def resolve(self, key: str = "") -> Any:
        """Import the module and return the function (or class).

        Raises ``TaskError`` if there is no such module or function, or the module cannot be imported.
        """
        where = f"{self.file}: key {key or self.key or '!function'!r}"
        module_name, _, attribute = self.name.rpartition(".")
        if not module_name:
            raise TaskError(f"{where}: '!function {self.name}' must have the form module.function")
        if not is_trusted(Path(self.file)):
            raise TaskError(
                f"{where}: '!function {self.name}' is code of a pack that may not run: lmms-eval packs trust"
            )
        module = _module(module_name, Path(self.file).parent, where)
        try:
            return getattr(module, attribute)
        except AttributeError:
            names = [name for name, value in vars(module).items() if callable(value) and not name.startswith("__")]
            close = difflib.get_close_matches(attribute, names, n=3, cutoff=0.4)
            hint = f"; did you mean {', '.join(close)}?" if close else ""
            file = getattr(module, "__file__", module.__name__)
            raise TaskError(f"{where}: {file} has no function {attribute!r}{hint}") from None


def named(function: Any, key: str) -> Any:
    """Wrap a function so that its errors become ``FunctionError`` and name its key and the line in its files.

    ``LmmsEvalError`` and ``NotEvaluated`` pass through. A class, or a value that is not a function, is returned
    unchanged.
    """
    if not callable(function) or isinstance(function, type):
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (LmmsEvalError, NotEvaluated):
            raise
        except (Exception, SystemExit) as error:  # the task's own code may raise anything
            place = place_of(error, function)
            raise FunctionError(f"{key} raised {error_text(error)}{f' ({place})' if place else ''}") from error

    return call


def resolve_all(value: Any, key: str = "") -> Any:
    """Copy a YAML value with every ``FunctionRef`` replaced by its function."""
    if isinstance(value, FunctionRef):
        return value.resolve(key)
    if isinstance(value, Mapping):
        return {name: resolve_all(item, key or str(name)) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [resolve_all(item, key) for item in value]
    return value


def describe_all(value: Any) -> Any:
    """Copy a YAML value with functions as ``<function module.name>`` and paths as plain text."""
    if isinstance(value, FunctionRef):
        return str(value)
    if isinstance(value, Mapping):
        return {name: describe_all(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [describe_all(item) for item in value]
    if isinstance(value, str):
        return str(value)
    if callable(value):
        return f"<function {getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__name__)}>"
    return value


def module_source(function: Any) -> str:
    """Return the source text of the module that defines a function; empty without source."""
    file = _module_file(function)
    if not file or not Path(file).is_file():
        return ""
    return Path(file).read_text(encoding="utf-8", errors="replace")


def comes_with_package(function: Any) -> bool:
    """Return whether a module of this package defines a function."""
    file = _module_file(function)
    return file is not None and Path(file).is_relative_to(_PACKAGE)


def _module_file(function: Any) -> str | None:
    target = getattr(function, "func", function)
    return getattr(sys.modules.get(getattr(target, "__module__", "") or ""), "__file__", None)


def _module(name: str, folder: Path, where: str) -> ModuleType:
    path = folder.joinpath(*name.split(".")).with_suffix(".py")
    with _LOCK:
        if path.is_file():
            path = path.resolve()
            if path not in _MODULES:
                dotted = dotted_name(path)
                _MODULES[path] = _import(dotted, where) if dotted else _execute(path, where)
            return _MODULES[path]
        name = own_name(name, folder.resolve())
        with _without_current_folder():
            try:
                found = name in sys.modules or importlib.util.find_spec(name) is not None
            except (ImportError, ValueError):
                found = False
            if not found and name.startswith("lmms_eval."):
                raise TaskError(f"{where}: {not_part_of_this_version(name)}")
            if not found:
                close = difflib.get_close_matches(path.stem, [file.stem for file in path.parent.glob("*.py")], n=3)
                hint = f"; did you mean {', '.join(close)}?" if close else ""
                raise TaskError(f"{where}: there is neither {path} nor an installed module {name!r}{hint}")
            return _import(name, where)


def _execute(path: Path, where: str) -> ModuleType:
    """Run a module file under a unique name, so that the ``utils.py`` of two folders are two modules."""
    name = f"{path.stem}__{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = with_own_imports(importlib.util.spec_from_file_location(name, path))
    if spec is None or spec.loader is None:
        raise TaskError(f"{where}: {path} is no Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with ExitStack() as unless_imported, _import_errors(f"{where}: {path}"):
        unless_imported.callback(sys.modules.pop, name, None)
        spec.loader.exec_module(module)
        unless_imported.pop_all()
    return module


def _import(name: str, where: str) -> ModuleType:
    with _import_errors(f"{where}: module {name}"):
        return importlib.import_module(name)


@contextmanager
def _import_errors(what: str) -> Iterator[None]:
    try:
        yield
    except (Exception, SystemExit) as error:  # importing a task module may raise anything, or exit
        raise TaskError(f"{what} cannot be imported: {error_text(error)}") from error


@contextmanager
def _without_current_folder() -> Iterator[None]:
    """Remove the current folder, which ``python -m`` puts first, from the search path."""
    first = sys.path[0] if sys.path else None
    if first is None or (first and Path(first).resolve() != Path.cwd()):
        yield
        return
    del sys.path[0]
    try:
        yield
    finally:
        sys.path.insert(0, first)


class Seeding:
    """Seeds for one task. All threads share the generator, so a seeded call holds a lock.

    Prompt functions run in many threads. They are seeded and serialised only if one of their modules names random.

    Args:
        seed: the run's seed.
        task: the task's name.
        prompt_functions: functions that make prompts.
        is_scored_by_us: only functions of this package score. They draw no random numbers, and seeding is slow.
        scoring_functions: functions that score answers.
    """

    def __init__(
        self, seed: int, task: str, prompt_functions: Iterable[Any], is_scored_by_us: bool = False,
        scoring_functions: Iterable[Any] = (),
    ) -> None:  # fmt: skip
        self._seed, self._prefix = seed, f"{seed}:{task}:"
        draws = any("random" in module_source(function) for function in prompt_functions)
        self.prompt: Callable[[int], AbstractContextManager[Any]] = self._seeded if draws else nullcontext
        """Returns a context for calls that make a prompt, by the number of the document."""
        self.scoring: Callable[[int], AbstractContextManager[Any]] = nullcontext if is_scored_by_us else self._seeded
        """Returns a context for calls that score an answer, by the number of the document."""
        self.scoring_may_draw = any("random" in module_source(function) for function in scoring_functions)
        """A module of a function that scores answers names random."""

    @contextmanager
    def _seeded(self, doc_id: int) -> Iterator[None]:
        with _LOCK:
            random.seed(f"{self._prefix}{doc_id}")
            previous = RUN_SEED.set(self._seed)
            try:
                yield
            finally:
                RUN_SEED.reset(previous)
