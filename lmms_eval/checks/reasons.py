"""Errors met by a check as findings: of what kind, and how to get what is missing."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator, Sequence
from functools import cache

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
from lmms_eval.utils.absent_names import absent_name, not_part_of_this_version, told

NO_DATA, NO_FILE, NO_NETWORK = "data not at hand", "file not at hand", "needs the network"
NO_PACKAGE, NO_NAME = "package missing", "name not in this version"
_DISTRIBUTIONS = {
    "Levenshtein": "levenshtein", "PIL": "pillow", "bs4": "beautifulsoup4", "cv2": "opencv-python-headless",
    "decord": "decord", "docx": "python-docx", "dotenv": "python-dotenv", "fitz": "pymupdf", "git": "gitpython",
    "google.genai": "google-genai", "google.generativeai": "google-generativeai", "skimage": "scikit-image",
    "sklearn": "scikit-learn", "yaml": "pyyaml", "zss": "zss",
}  # fmt: skip
"""Packages by their modules, where the names differ."""
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
            cause = f"{link.name}: {_how_to_install(link.name)}"
            return Finding(step, "failed", NO_PACKAGE, cause, f"{message}; {_how_to_install(link.name)}")
    if any(isinstance(link, MissingDataError) or _is_offline(link) for link in chain):
        where = _looked_in(chain) if step in _PREPARED else ""
        return Finding(step, "skipped", NO_DATA, _lacking(error), message + where)
    if step in _PREPARED and any(map(_is_gone, chain)):
        return Finding(step, "skipped", NO_FILE, _lacking(error), message)
    return Finding(step, "failed", _kind(chain), told(chain[-1]), message)


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


def _how_to_install(module: str) -> str:
    top = module.partition(".")[0]
    package = _DISTRIBUTIONS.get(".".join(module.split(".")[:2])) or _DISTRIBUTIONS.get(top) or top.replace("_", "-")
    extra = _extras().get(package.lower())
    if extra:
        return f"pip install 'lmms_eval[{extra}]'"
    return (
        f"pip install {package}, if that is the package that has it; a module of another task folder is found where "
        "--include_path names the folder above both"
    )


@cache
def _extras() -> dict[str, str]:
    """Packages of the optional parts of this one, each with its part."""
    try:
        lines = importlib.metadata.requires("lmms_eval") or ()
    except importlib.metadata.PackageNotFoundError:
        lines = ()
    found = [(_PACKAGE.match(line), _EXTRA.search(line)) for line in lines]
    return {name[0].lower(): extra[1] for name, extra in found if name and extra and extra[1] not in ("all", "dev")}
