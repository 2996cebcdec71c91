"""Errors met by a check as findings: of what kind, and how to get what is missing."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from yaml import YAMLError

from lmms_eval.checks.findings import Finding
from lmms_eval.checks.network import REFUSED, RefusedConnectionError
from lmms_eval.errors import (
    DataError,
    FunctionError,
    LmmsEvalError,
    MediaError,
    MissingDataError,
    MissingOptionalDependencyError,
    UnknownNameError,
)
from lmms_eval.tasks.yaml import included
from lmms_eval.utils.absent_names import absent_name, not_part_of_this_version, told

NO_DATA, NO_FILE, NO_NETWORK = "data not at hand", "file not at hand", "needs the network"
NO_PACKAGE, NO_NAME = "package missing", "name not in this version"
_DISTRIBUTIONS = {
    "Levenshtein": "levenshtein", "PIL": "pillow", "azure": "azure-identity", "azure.identity": "azure-identity",
    "azure.storage": "azure-storage-blob", "bs4": "beautifulsoup4", "cv2": "opencv-python-headless",
    "decord": "decord", "docx": "python-docx", "dotenv": "python-dotenv", "fitz": "pymupdf", "git": "gitpython",
    "google.cloud": "google-cloud-storage", "google.genai": "google-genai",
    "google.generativeai": "google-generativeai", "reka": "reka-api", "skimage": "scikit-image",
    "sklearn": "scikit-learn", "yaml": "pyyaml", "zss": "zss",
}  # fmt: skip
"""Packages by their modules, where the names differ."""
_CLASHING = {
    "latex2sympy2": (
        "latex2sympy2 asks for antlr4-python3-runtime 4.7.2, which does not go with 4.11 of this package: give the "
        "task an environment of its own, or have it import latex2sympy2_extended (pip install 'lmms_eval[math]')"
    ),
}
"""Packages that cannot be installed together with this one."""
_GONE = re.compile(r"not exist|not found|not there|no such file|cannot find", re.IGNORECASE)
"""Texts of errors that are about files."""
_GONE_FILE = re.compile(r"FileNotFoundError|No such file or directory|(not found|not there); (tried|looked for)")
"""The same in reasons of failed samples, of which the error's type is not known."""
_EXTRA = re.compile(r"extra\s*==\s*['\"]([\w-]+)['\"]")
_PACKAGE = re.compile(r"[A-Za-z0-9._-]+")
_PREPARED = ("data", "prompt", "gold", "empty")
"""Steps whose code reads the task's data: a file that it lacks belongs to them."""


def finding(step: str, error: BaseException) -> Finding:
    """Tell what an error of a step means."""
    chain = list(_chain(error))
    message = _message(error)
    for link in chain:
        if isinstance(link, RefusedConnectionError) or REFUSED in str(link):
            return Finding(step, "skipped", NO_NETWORK, REFUSED, message)
    for link in chain:
        if name := absent_name(link):
            return Finding(step, "failed", NO_NAME, not_part_of_this_version(name), message)
        if isinstance(link, MissingOptionalDependencyError):
            return Finding(step, "failed", NO_PACKAGE, str(link), message)
        if isinstance(link, ModuleNotFoundError) and link.name:
            absent = absent_modules(link)
            how = _how_to_install(absent)
            also = f"; absent here: {', '.join(absent)}" if len(absent) > 1 else ""
            return Finding(step, "failed", NO_PACKAGE, f"{', '.join(absent)}: {how}", f"{message}{also}; {how}")
    if any(isinstance(link, MissingDataError) or _is_offline(link) for link in chain):
        where = _looked_in(chain) if step in _PREPARED else ""
        return Finding(step, "skipped", NO_DATA, _lacking(error), message + where)
    if step in _PREPARED and any(map(_is_gone, chain)):
        return Finding(step, "skipped", NO_FILE, _lacking(error), message)
    return Finding(step, "failed", _kind(chain), told(chain[-1]), message)


def absent_modules(error: ModuleNotFoundError) -> tuple[str, ...]:
    """Find all modules that the importing file asks for and that are not here: one look tells what to install."""
    name = str(error.name)
    frame = error.__traceback__
    files = []
    while frame is not None:
        files.append(frame.tb_frame.f_code.co_filename)
        frame = frame.tb_next
    # The import system's own frames, and those of the imports of included trees, ask for nothing.
    file = next((Path(one) for one in reversed(files) if not one.startswith("<") and one != included.__file__), None)
    try:
        body = [] if file is None else ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        body = []
    beside = Path() if file is None else file.parent
    found = [one for one in dict.fromkeys(_imports(body)) if _is_absent(one, beside)]
    is_told = any(one == name or one.startswith(f"{name}.") for one in found)
    return tuple(found if is_told else [name, *found])


def _imports(body: Sequence[ast.stmt]) -> Iterator[str]:
    """The modules that a file imports as it is imported itself; those that it can do without are passed over."""
    for statement in body:
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            yield statement.module
        elif isinstance(statement, ast.If | ast.With):
            yield from _imports(statement.body)


def _is_absent(module: str, beside: Path) -> bool:
    parts = module.split(".")
    if parts[0] == "lmms_eval" or (beside / parts[0]).is_dir() or (beside / f"{parts[0]}.py").is_file():
        return False
    try:
        spec = importlib.util.find_spec(parts[0])
        if spec is not None and spec.origin is None and len(parts) > 1:  # a namespace, which several packages share
            spec = importlib.util.find_spec(".".join(parts[:2]))
    except (ImportError, ValueError):
        return False
    return spec is None


def of_reason(step: str, reason: str) -> Finding:
    """Tell what the engine's reason for a failed sample means."""
    if REFUSED in reason:
        return Finding(step, "skipped", NO_NETWORK, REFUSED, reason)
    if _GONE_FILE.search(reason):
        return Finding(step, "skipped", NO_FILE, "files of its documents", reason)
    return Finding(step, "failed", "scoring raises", reason, reason)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it, the first cause last."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _message(error: BaseException) -> str:
    return str(error) if isinstance(error, LmmsEvalError) else told(error)


def _kind(chain: Sequence[BaseException]) -> str:
    if any(isinstance(link, SystemExit) for link in chain):
        return "code exits"
    kinds: tuple[tuple[type[BaseException], str], ...] = (
        (UnknownNameError, "unknown name"),
        (DataError, "data unusable"),
        (MediaError, "media unusable"),
        (FunctionError, "function raises"),
    )
    own = next((text for kind, text in kinds if isinstance(chain[0], kind)), "")
    is_foreign = not isinstance(chain[-1], LmmsEvalError | YAMLError)
    return own or ("code raises" if is_foreign else "task file wrong")


def _is_gone(link: BaseException) -> bool:
    if isinstance(link, FileNotFoundError):
        return True
    return isinstance(link, MediaError | SystemExit) and _GONE.search(str(link)) is not None


def _is_offline(link: BaseException) -> bool:
    """The hub's libraries were asked for what their caches lack; their classes are not imported for this."""
    return type(link).__name__ in ("OfflineModeIsEnabled", "LocalEntryNotFoundError")


def _lacking(error: BaseException) -> str:
    kind = getattr(error, "kind", "")
    return kind if isinstance(kind, str) and kind else "not where it was looked for"


def _looked_in(chain: list[BaseException]) -> str:
    """The cache in which a data set of the hub was looked for."""
    if not any(_is_offline(link) or isinstance(link, ConnectionError) for link in chain):
        return ""
    from datasets import config

    return f"; a check looks into the cache only ({config.HF_DATASETS_CACHE}): an evaluation with a network fetches it"


def _how_to_install(modules: Sequence[str]) -> str:
    tops = {module: module.partition(".")[0] for module in modules}
    notes = dict.fromkeys(_CLASHING[top] for top in tops.values() if top in _CLASHING)
    packages = {
        _DISTRIBUTIONS.get(".".join(module.split(".")[:2])) or _DISTRIBUTIONS.get(top) or top.replace("_", "-")
        for module, top in tops.items()
        if top not in _CLASHING
    }
    extras = sorted({extra for name in packages if (extra := _extras().get(name.lower()))})
    others = sorted(name for name in packages if name.lower() not in _extras())
    told = []
    if extras:
        told.append(f"pip install 'lmms_eval[{','.join(extras)}]'")
    if others:
        whose = "that is the package that has it" if len(others) == 1 else "these are the packages that have them"
        told.append(
            f"pip install {' '.join(others)}, if {whose}; a module of another task folder is found where "
            "--include_path names the folder above both"
        )
    return "; ".join([*told, *notes])


@cache
def _extras() -> dict[str, str]:
    """Packages of the optional parts of this one, each with its part."""
    try:
        lines = importlib.metadata.requires("lmms_eval") or ()
    except importlib.metadata.PackageNotFoundError:
        lines = ()
    found = [(_PACKAGE.match(line), _EXTRA.search(line)) for line in lines]
    return {name[0].lower(): extra[1] for name, extra in found if name and extra and extra[1] not in ("all", "dev")}
