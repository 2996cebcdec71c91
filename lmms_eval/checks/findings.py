"""Findings of checks: explains errors, and reports on each task, group, file and model."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeGuard, get_args

from msgspec import Struct
from yaml import YAMLError

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import (
    AbsentFileError,
    DataError,
    FunctionError,
    LmmsEvalError,
    MediaError,
    MissingDataError,
    MissingOptionalDependencyError,
    UnknownNameError,
)
from lmms_eval.tasks.data.hub import OFFLINE_IS_SET
from lmms_eval.tasks.yaml import included
from lmms_eval.utils.addresses import is_loopback
from lmms_eval.utils.installed import (
    absent_name,
    error_text,
    not_part_of_this_version,
    own_requirements,
    package_version,
    required_packages,
)
from lmms_eval.utils.records import to_dict
from lmms_eval.utils.terminal import named_table

REFUSED = "a check opens no connection to other machines"
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
"""Environment variables that restrict the hub's libraries to their caches."""
_EVENTS = {"socket.connect": 1, "socket.getaddrinfo": 0, "socket.gethostbyname": 0, "socket.sendto": 1}
"""Audit events of the interpreter, and the place of the host or address in their arguments."""


class RefusedConnectionError(ConnectionError):
    """Code that is being checked tried to connect to another machine."""


def refuse_connections() -> None:
    """Refuse connections to other machines, for the rest of this process."""
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    place = _EVENTS.get(event)
    if place is None:
        return
    address = arguments[place]
    host = address[0] if isinstance(address, tuple) else address if place == 0 else None
    if host is not None and not is_this_machine(host):
        shown = host.decode(errors="replace") if isinstance(host, bytes) else host
        raise RefusedConnectionError(f"{REFUSED} ({shown})")


def is_this_machine(host: Any) -> bool:
    """Return whether a host's name or number is that of the loopback interface, without looking up names."""
    text = host.decode(errors="replace") if isinstance(host, bytes | bytearray) else str(host)
    return not text or is_loopback(text)


Status = Literal["ok", "doubtful", "skipped", "failed"]
"""``doubtful``: it runs, but a score is not what it should be. ``skipped``: something that the step needs is absent."""
What = Literal["task", "group", "file", "model"]
_WORST_FIRST: tuple[Status, ...] = ("failed", "doubtful", "skipped")
SHOWN: Mapping[Status, str] = {"failed": "broken", "doubtful": "warning", "skipped": "skipped", "ok": "OK"}
"""Words for people."""
RECORDED: Mapping[Status, str] = {"failed": "broken", "doubtful": "doubtful", "skipped": "skipped", "ok": "well"}
"""Words of ``check --json``. They differ from ``SHOWN`` because programs that read the first version know them."""


class Finding(Struct, frozen=True):
    """Outcome of one step."""

    step: str
    status: Status = "ok"
    kind: str = ""
    """A few words. Findings are counted by them: ``package missing``, ``data not downloaded``, ..."""
    cause: str = ""
    """The part of the message that is the same for all tasks with this fault."""
    message: str = ""
    """The whole message: where, what, and what to do."""


class CheckReport(Struct, frozen=True):
    """The report of one task, group, file or model."""

    name: str
    what: What
    file: str
    findings: tuple[Finding, ...]
    seconds: float = 0.0

    @property
    def status(self) -> Status:
        """The worst status of the findings."""
        found = {finding.status for finding in self.findings}
        return next((status for status in _WORST_FIRST if status in found), "ok")

    @property
    def decisive(self) -> Finding | None:
        """The first finding with the worst status, or ``None`` if everything is ok."""
        status = self.status
        return None if status == "ok" else next(each for each in self.findings if each.status == status)

    def as_record(self) -> dict[str, Any]:
        """Return the JSON of ``lmms-eval check --json``. Steps that are ok have no texts."""
        findings = [{key: value for key, value in to_dict(each).items() if value} for each in self.findings]
        return {
            "name": self.name,
            "what": self.what,
            "file": self.file,
            "status": RECORDED[self.status],
            "seconds": round(self.seconds, 3),
            "findings": findings,
        }


class Checks(Struct, frozen=True):
    """The reports of a check."""

    checked: tuple[CheckReport, ...]
    seconds: float = 0.0
    processes: int = 0

    def having(self, status: Status) -> Iterator[CheckReport]:
        return (each for each in self.checked if each.status == status)

    def counts(self) -> dict[str, int]:
        """Count the reports by outcome, in the words of ``RECORDED``."""
        return {word: sum(1 for _ in self.having(status)) for status, word in RECORDED.items()}

    def is_sound(self, strict: bool = False) -> bool:
        """Return whether nothing is broken and, with ``strict``, nothing is doubtful."""
        refused = ("failed", "doubtful") if strict else ("failed",)
        return not any(each.status in refused for each in self.checked)


def joined(parts: Sequence[Checks]) -> Checks:
    """Join several checks to one."""
    return Checks(
        tuple(each for part in parts for each in part.checked),
        sum(part.seconds for part in parts),
        max((part.processes for part in parts), default=0),
    )


NO_DATA, NO_FILE, NO_NETWORK = "data not downloaded", "file not found", "needs the network"
NO_PACKAGE, NO_NAME = "package missing", "name not in this version"
OTHER_VERSION = "package of another version"
NO_VARIABLE, NO_PROGRAM = "environment variable missing", "program missing"
NOT_SCORED = "cannot be scored here"
NO_ANSWER = "the model does not answer"
_DISTRIBUTIONS = {
    "Levenshtein": "levenshtein", "PIL": "pillow", "azure": "azure-identity", "azure.identity": "azure-identity",
    "azure.storage": "azure-storage-blob", "bs4": "beautifulsoup4", "cv2": "opencv-python-headless",
    "decord": "decord", "docx": "python-docx", "dotenv": "python-dotenv", "fitz": "pymupdf", "git": "gitpython",
    "google.cloud": "google-cloud-storage", "google.genai": "google-genai",
    "google.generativeai": "google-generativeai", "reka": "reka-api", "skimage": "scikit-image",
    "sklearn": "scikit-learn", "yaml": "pyyaml", "zss": "zss",
}  # fmt: skip
"""Packages by their modules, if the names differ."""
_CLASHING = {
    "latex2sympy2": (
        "latex2sympy2 needs antlr4-python3-runtime 4.7.2, which conflicts with 4.11 of this package: give the "
        "task an environment of its own, or have it import latex2sympy2_extended (pip install 'lmms_eval[math]')"
    ),
}
"""Packages that cannot be installed together with this one."""
_GONE = re.compile(r"not exist|not found|not there|no such file|cannot find", re.IGNORECASE)
"""Matches texts of errors about files."""
_GONE_FILE = re.compile(r"FileNotFoundError|No such file or directory|(not found|not there); (tried|looked for)")
"""The same for the reasons of failed samples, which do not have the type of the error."""
_OFFLINE_ERRORS = ("OfflineModeIsEnabled", "LocalEntryNotFoundError")
_PREPARED = ("data", "prompt", "gold", "empty")
"""Steps that read the task's data, so that a missing file is a part of these data."""
_KEY = re.compile(r"\b[A-Z][A-Z0-9]*+(?:_[A-Z0-9]++)*?_(?:KEY|TOKEN|SECRET)\b")
"""Matches names of environment variables that hold keys."""
_PROGRAM = re.compile(r"not installed or not (?:found )?[io]n (?:the |your )?PATH", re.IGNORECASE)
"""Matches messages of task code about programs."""
_IMPORT_ERROR = re.compile(r"cannot import name '([^']++)'")


def finding(step: str, error: BaseException) -> Finding:
    """Explain an error of a step."""
    chain = _chain(error)
    message = str(error) if isinstance(error, LmmsEvalError) else error_text(error)
    for link in chain:
        if isinstance(link, RefusedConnectionError) or REFUSED in str(link):
            return Finding(step, "skipped", NO_NETWORK, REFUSED, message)
    if absent := next(filter(None, (_absent(step, link, message) for link in chain)), None):
        return absent
    if any(isinstance(link, MissingDataError) or _is_offline(link) for link in chain):
        if step in _PREPARED and any(_is_offline(link) or isinstance(link, ConnectionError) for link in chain):
            from datasets import config

            cache = config.HF_DATASETS_CACHE
            message = message.replace(f", and {OFFLINE_IS_SET}", "")  # by the check itself
            message += f"; a check looks into the cache only ({cache}): an evaluation with a network fetches it"
        return Finding(step, "skipped", NO_DATA, _lacking(error), message)
    if step in _PREPARED and any(map(_is_gone, chain)):
        return Finding(step, "skipped", NO_FILE, _lacking(error), message)
    if lacking := next(filter(None, map(_lack, chain)), None):
        kind, cause = lacking
        return Finding(step, "failed", kind, cause, message if cause in message else f"{message}; {cause}")
    own = [link for link in chain if not _is_of_pydantic(link)] or chain  # the others repeat its message
    return Finding(step, "failed", _kind(own), error_text(own[-1]), message)


def _absent(step: str, link: BaseException, message: str) -> Finding | None:
    """Explain an error about a name, a package, a program or a file of the user; ``None`` for any other error."""
    if name := absent_name(link):
        return Finding(step, "failed", NO_NAME, not_part_of_this_version(name), message)
    if isinstance(link, MissingOptionalDependencyError):
        return Finding(step, "failed", NO_PACKAGE, str(link), message)
    if isinstance(link, AbsentFileError):
        return Finding(step, "failed", NO_FILE, "files of its documents", message)
    if isinstance(link, NotEvaluated):
        return Finding(step, "skipped", NOT_SCORED, str(link), message)
    if modules := _modules_lacking(link):
        how = _how_to_install(modules)
        also = f"; absent here: {', '.join(modules)}" if len(modules) > 1 or isinstance(link, NameError) else ""
        return Finding(step, "failed", NO_PACKAGE, f"{', '.join(modules)}: {how}", f"{message}{also}; {how}")
    return None


def _lack(link: BaseException) -> tuple[str, str] | None:
    """Return what this machine lacks by an error of task code, in the form of ``kind`` and ``cause``; else ``None``."""
    if isinstance(link, LmmsEvalError | NameError):
        return None
    text = str(link)
    if isinstance(link, ImportError) and link.name and (found := _IMPORT_ERROR.match(text)):
        package = _distribution(link.name)
        if (version := package_version(package)) is not None:
            return OTHER_VERSION, f"{package} {version} has no {found[1]}"
    if name := _absent_variable(link):
        return NO_VARIABLE, f"{name}: set this environment variable"
    return (NO_PROGRAM, text) if _PROGRAM.search(text) else None


def _absent_variable(error: BaseException) -> str:
    """Return the environment variable that an error is about, if it is not set; else an empty text.

    It is the one that ``os.environ`` did not find. If the message names a variable with a key, and the code passes
    another one as the key, that one counts.
    """
    raising = next((file for file, _ in reversed(_lines(error))), "")
    if isinstance(error, KeyError) and raising.endswith(("os.py", "<frozen os>")):
        return str(error.args[0])
    if _KEY.search(str(error)) is None:
        return ""
    return next(_passed_keys(error), "") or _absent_key(str(error))


def _passed_keys(error: BaseException) -> Iterator[str]:
    """Yield the variables without value that the last line of task code in a traceback passes as ``api_key``."""
    own = [(file, line) for file, line in _lines(error) if not file.startswith("<") and "site-packages" not in file]
    try:
        tree = ast.parse(Path(own[-1][0]).read_bytes())
    except (IndexError, OSError, SyntaxError, ValueError):
        return
    line = own[-1][1]
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    raising = (call for call in calls if call.lineno <= line <= (call.end_lineno or call.lineno))
    values = [keyword.value for call in raising for keyword in call.keywords if keyword.arg == "api_key"]
    names = {value.id for value in values if isinstance(value, ast.Name)}
    assigned = (node for node in ast.walk(tree) if isinstance(node, ast.Assign))
    values += [node.value for node in assigned if names.intersection(map(ast.unparse, node.targets))]
    for value in values:
        name = _variable_read(value)
        if name and not os.environ.get(name):
            yield name


def _variable_read(node: ast.expr) -> str:
    """Return the environment variable that ``os.getenv(...)`` or ``os.environ.get(...)`` reads; else an empty text."""
    if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) in ("os.getenv", "os.environ.get"):
        first = node.args[0]
        return str(first.value) if isinstance(first, ast.Constant) else ""
    return ""


def _absent_key(text: str) -> str:
    """Return the first environment variable with a key that a text names, if it is not set; else an empty text."""
    found = _KEY.search(text)
    return found[0] if found is not None and not os.environ.get(found[0]) else ""


def _modules_lacking(error: BaseException) -> tuple[str, ...]:
    """Return the absent modules that an error is about: an import, or a name that a skipped import would define."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        return absent_modules(error)
    if isinstance(error, NameError) and error.name:
        file, body = _importing(error)
        folder = Path() if file is None else file.parent
        tried = (statement for statement in body if isinstance(statement, ast.Try) and statement.handlers)
        defining = [part for statement in tried for part in statement.body if error.name in _defined(part)]
        return tuple(one for one in dict.fromkeys(_imports(defining)) if _is_absent(one, folder))
    return ()


def _defined(statement: ast.stmt) -> set[str]:
    """Return the names that an import statement defines."""
    aliases = statement.names if isinstance(statement, ast.Import | ast.ImportFrom) else []
    return {(alias.asname or alias.name).partition(".")[0] for alias in aliases}


def _lines(error: BaseException) -> list[tuple[str, int]]:
    """Return the files and lines of an error's traceback, the raising one last."""
    frame = error.__traceback__
    lines = []
    while frame is not None:
        lines.append((frame.tb_frame.f_code.co_filename, frame.tb_lineno))
        frame = frame.tb_next
    return lines


def _importing(error: BaseException) -> tuple[Path | None, Sequence[ast.stmt]]:
    """Return the file of task code that raised an error, with its statements.

    The frames of the import system and of the imports of included trees are not of task code.
    """
    files = [file for file, _ in reversed(_lines(error))]
    file = next((Path(one) for one in files if not one.startswith("<") and one != included.__file__), None)
    try:
        return file, [] if file is None else ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return file, []


def absent_modules(error: ModuleNotFoundError) -> tuple[str, ...]:
    """Return all absent modules that the importing file needs, one of each package, to be installed at once."""
    name = str(error.name)
    file, body = _importing(error)
    folder = Path() if file is None else file.parent
    imported = [one for one in dict.fromkeys(_imports(body)) if file is None or not _is_of_pack(one, file)]
    found = [one for one in imported if _is_absent(one, folder)]
    is_found = any(one == name or one.startswith(f"{name}.") for one in found)
    by_package: dict[str, str] = {}
    for module in found if is_found else [name, *found]:
        by_package.setdefault(_distribution(module), module)
    return tuple(by_package.values())


def _is_of_pack(module: str, file: Path) -> bool:
    """Return whether an import in a pack's file finds a module of the pack, or this package's replacement for one."""
    return module.partition(".")[0] == included.package_of(file) or included.own_name(module, file) != module


def _imports(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Yield the modules that a file needs to be imported, also those in a ``try`` that raises the error again."""
    for statement in body:
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            yield statement.module
        elif isinstance(statement, ast.If | ast.With) or _raises_again(statement):
            yield from _imports(statement.body)


def _raises_again(statement: ast.stmt) -> TypeGuard[ast.Try]:
    """Return whether every handler of a ``try`` ends with an error."""
    if not isinstance(statement, ast.Try) or not statement.handlers:
        return False
    return all(isinstance(handler.body[-1], ast.Raise) for handler in statement.handlers)


def _is_absent(module: str, folder: Path) -> bool:
    parts = module.split(".")
    if parts[0] == "lmms_eval" or (folder / parts[0]).is_dir() or (folder / f"{parts[0]}.py").is_file():
        return False
    try:
        spec = importlib.util.find_spec(parts[0])
        if spec is not None and spec.origin is None and len(parts) > 1:  # a namespace that several packages share
            spec = importlib.util.find_spec(".".join(parts[:2]))
    except (ImportError, ValueError):
        return False
    return spec is None


def of_reason(step: str, reason: str) -> Finding:
    """Explain the engine's reason for a failed sample."""
    if REFUSED in reason:
        return Finding(step, "skipped", NO_NETWORK, REFUSED, reason)
    if _GONE_FILE.search(reason):
        return Finding(step, "skipped", NO_FILE, "files of its documents", reason)
    if name := _absent_key(reason):
        return Finding(step, "failed", NO_VARIABLE, f"{name}: set this environment variable", reason)
    return Finding(step, "failed", "scoring raises", reason, reason)


def of_request(step: str, reason: str) -> Finding:
    """Explain why a model gave no answer."""
    text = f"{NO_ANSWER}: {reason}"
    found = of_reason(step, text)
    return found if found.kind != "scoring raises" else Finding(step, "failed", NO_ANSWER, reason, text)


def _chain(error: BaseException) -> list[BaseException]:
    """Return the error and its causes, the first cause last."""
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and not any(link is one for one in chain):
        chain.append(link)
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return chain


def _is_of_pydantic(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] in ("pydantic", "pydantic_core")


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
    """Return whether the hub's libraries lack something in their caches. Their classes are not imported for this."""
    return type(link).__name__ in _OFFLINE_ERRORS or f"({_OFFLINE_ERRORS[0]})" in str(link)


def _lacking(error: BaseException) -> str:
    kind = getattr(error, "kind", "")
    return kind if isinstance(kind, str) and kind else "not found in the places searched"


def _how_to_install(modules: Sequence[str]) -> str:
    tops = {module: module.partition(".")[0] for module in modules}
    notes = dict.fromkeys(_CLASHING[top] for top in tops.values() if top in _CLASHING)
    packages = {_distribution(module) for module, top in tops.items() if top not in _CLASHING}
    extras = sorted({extra for name in packages if (extra := _extras().get(name.lower()))})
    others = sorted(name for name in packages if name.lower() not in _extras())
    hints = []
    if extras:
        hints.append(f"pip install 'lmms_eval[{','.join(extras)}]'")
    if others:
        source = "that is the package that has it" if len(others) == 1 else "these are the packages that have them"
        hints.append(
            f"pip install {' '.join(others)}, if {source}; a module of another task folder is found where "
            "--include_path names the folder above both"
        )
    return "; ".join([*hints, *notes])


def _distribution(module: str) -> str:
    """Return the package that most likely has a module."""
    top = module.partition(".")[0]
    return _DISTRIBUTIONS.get(".".join(module.split(".")[:2])) or _DISTRIBUTIONS.get(top) or top.replace("_", "-")


def install_line(modules: Iterable[str]) -> str:
    """Return the command that installs the packages of those modules that are absent; empty if all are here."""
    absent = [module for module in modules if _is_absent(module, Path())]
    return f"pip install {' '.join(sorted({_distribution(module) for module in absent}))}" if absent else ""


@cache
def _extras() -> dict[str, str]:
    """Return the extra of this package for each package in its extras: the first of several."""
    found = list(required_packages(own_requirements()))
    return {package.lower(): extra for package, extra in reversed(found) if extra}


_NAMES = 4
_CAUSE = 160


def check_lines(checks: Checks) -> list[str]:
    """Return the table of faults, an example of each with what to do, and the numbers."""
    faults: list[tuple[Status, Finding, list[str]]] = []  # equal findings with the names that have them
    for status in _WORST_FIRST:
        alike: dict[tuple[str, str, str], list[tuple[CheckReport, Finding]]] = {}
        for each in checks.having(status):
            worst = each.decisive
            if worst is not None:
                alike.setdefault((worst.step, worst.kind, worst.cause), []).append((each, worst))
        for found in sorted(alike.values(), key=lambda found: -len(found)):
            faults.append((status, found[0][1], [each.name for each, _ in found]))
    lines = []
    if faults:
        causes = [first.cause for _, first, _ in faults]
        listed = [
            ", ".join(names[:_NAMES]) + (f" and {len(names) - _NAMES} more" if len(names) > _NAMES else "")
            for _, _, names in faults
        ]
        columns = {
            "outcome": [SHOWN[status] for status, _, _ in faults],
            "step": [first.step for _, first, _ in faults],
            "what": [first.kind for _, first, _ in faults],
            "cause": [text if len(text) <= _CAUSE else f"{text[: _CAUSE - 3]}..." for text in causes],
            "number": [str(len(names)) for _, _, names in faults],
            "names": listed,
        }
        lines += [named_table(columns, ("number",)).rstrip("\n"), ""]
        lines += [*(f"{SHOWN[status]}: {names[0]}: {first.message}" for status, first, names in faults), ""]
    return [*lines, summary(checks)]


def summary(checks: Checks) -> str:
    """Return the numbers in one line: ``3 tasks, 1 model checked: 3 OK, 1 broken (2.1 s, 2 processes)``."""
    numbers = Counter(each.what for each in checks.checked)
    kinds = [(numbers[what], what) for what in get_args(What) if numbers[what]]
    checked = ", ".join(f"{number} {what}{'s' if number != 1 else ''}" for number, what in kinds) or "nothing"
    outcomes = Counter(each.status for each in checks.checked)
    plural = {"warning": "warnings"}
    shown = [
        f"{number} {plural.get(word, word) if number > 1 else word}"
        for status, word in SHOWN.items()
        if (number := outcomes[status])
    ]
    verdict = ": " + (SHOWN["ok"] if outcomes.keys() == {"ok"} else ", ".join(shown)) if shown else ""
    time = f"{checks.seconds:.1f} s, {checks.processes} process{'es' if checks.processes != 1 else ''}"
    return f"{checked} checked{verdict} ({time})"


def absent_needs(words: Iterable[str]) -> Iterator[str]:
    """For each need (``tasks.facts.NEEDS``) that is not met, yield what is missing and what to do."""
    from lmms_eval.api.outcome import NotEvaluated
    from lmms_eval.config.options import environment_defaults

    words = tuple(words)
    if "judge" in words and not {"judge_model", "judge_base_url"} & environment_defaults(os.environ).keys():
        yield "judge: none is named; give --judge_model and --judge_base_url to the run"
    if "java" in words and shutil.which("java") is None:
        yield "java: not found on PATH; metrics that need it are not evaluated"
    if "nltk" in words:
        from lmms_eval.tasks._task_utils.linguistic import open_linguistics

        try:
            open_linguistics()
        except NotEvaluated as absent:
            yield f"nltk: {absent.reason}"
