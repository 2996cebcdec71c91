"""The exception tree. Every message says what failed, where, and what to do about it.

``exit_code`` is what the command line ends with when the error reaches it (see ``docs/commands.md``).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import ClassVar


class LmmsEvalError(Exception):
    """Base of all errors that this package raises on purpose."""

    exit_code: ClassVar[int] = 1
    section: ClassVar[str] = ""
    """Its section in ``docs/troubleshooting.md``."""


class UsageError(LmmsEvalError):
    """The person who typed the command can mend it: a bad option, an unknown name, bad input."""

    exit_code: ClassVar[int] = 2


class ArgumentError(UsageError, AssertionError):
    """An argument of a name that task files import is wrong; those that catch ``AssertionError`` get it."""


class PatternError(UsageError, re.error):
    """A regular expression is wrong; those that catch ``re.error`` get it."""


class MissingOptionalDependencyError(UsageError, ImportError):
    """An optional package is not installed; those that catch ``ImportError`` get it."""

    section: ClassVar[str] = "missing-packages"


class ConfigError(UsageError):
    """An option or a configuration file is wrong."""


class TaskError(UsageError):
    """A task's YAML file or its functions are wrong; the message names the file and the key."""

    section: ClassVar[str] = "wrong-task-files"


class DataError(UsageError):
    """Data of a task is missing, unreadable or of the wrong shape."""


class MissingDataError(DataError):
    """Data of a task are not where they were looked for; the message names the places."""

    section: ClassVar[str] = "missing-data"


class AbsentDataError(MissingDataError):
    """A task of a benchmark has no data here: left out where a group named it, an error where it was named itself.

    ``kind`` says in a few words what is absent: tasks that are left out are counted by it.
    """

    def __init__(self, message: str, kind: str = "no data here") -> None:
        super().__init__(message)
        self.kind = kind


class NothingToCompareError(UsageError, ValueError, IndexError):
    """A metric was called without a reference or a prediction; task files catch the built-in errors."""


class ModelError(UsageError):
    """A model cannot be built: missing folder, wrong argument, absent package, missing key."""

    section: ClassVar[str] = "models-that-cannot-be-built"


class EngineDiedError(LmmsEvalError):
    """A local engine ended in the middle of a run: nothing more can be asked, and what was answered is kept."""

    section: ClassVar[str] = "the-run-ends-early"


class RunLockedError(UsageError):
    """Another live process owns the journal of this run."""

    section: ClassVar[str] = "runs-in-use"


class MediaError(LmmsEvalError):
    """A picture, video or sound cannot be found, read or encoded."""


class ItemError(LmmsEvalError):
    """One document of a task is damaged: it fails, and the others are asked and scored."""


class FunctionError(LmmsEvalError):
    """A function of a task's own raised (``__cause__``): the message names its key and the place in its file."""


class JournalError(LmmsEvalError):
    """The record of the run cannot be written or read back."""

    section: ClassVar[str] = "the-run-ends-early"


class JobStoreError(LmmsEvalError):
    """The server's list of jobs cannot be read or written."""


class RequestError(UsageError):
    """A request to the server is wrong; the message names the field."""


class RefusedRequestError(RequestError):
    """A request asks for what the server was not started with; the message names the flag."""


class RepeatedKeyError(RequestError):
    """Two different requests were submitted with the same key."""


class BusyError(LmmsEvalError):
    """A server takes no more of this kind for the moment.

    Args:
        retry_after: seconds after which it may.
        is_clients: it is this client that asks too often.
    """

    def __init__(self, message: str, retry_after: float, is_clients: bool = False) -> None:
        super().__init__(message)
        self.retry_after, self.is_clients = retry_after, is_clients


class AggregationError(LmmsEvalError):
    """A task's own aggregation raised; the samples are kept."""

    section: ClassVar[str] = "the-run-ends-early"


class EvaluationServerError(LmmsEvalError):
    """An evaluation server has refused a request or cannot be reached (``status`` is ``None`` then)."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class JobFailedError(LmmsEvalError, RuntimeError):
    """A job of an evaluation server has failed or was cancelled; those that catch ``RuntimeError`` get it."""


class JobTimeoutError(LmmsEvalError, TimeoutError):
    """A job of an evaluation server has not ended in time; those that catch ``TimeoutError`` get it."""


class UnknownNameError(UsageError):
    """A name that is not registered, answered with the nearest known ones and, after ``joint``, a hint."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "", joint: str = " ") -> None:
        self.kind, self.name = kind, name
        close = difflib.get_close_matches(name, list(known), n=5, cutoff=0.5)
        message = f"unknown {kind} {name!r}"
        if close:
            message += f"; did you mean {', '.join(close)}?"
        if hint:
            message += f"{joint}{hint}"
        super().__init__(message)
