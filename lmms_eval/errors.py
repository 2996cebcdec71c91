"""All exceptions of the package. Every message states what failed, where, and what to do about it.

``exit_code`` is the exit code of the command line if the error reaches it (see ``docs/commands.md``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar


class LmmsEvalError(Exception):
    """Base of all errors that this package raises on purpose."""

    exit_code: ClassVar[int] = 1
    section: ClassVar[str] = ""
    """Section of ``docs/troubleshooting.md`` about this error."""


class UsageError(LmmsEvalError):
    """The user can fix this error: a bad option, an unknown name, bad input."""

    exit_code: ClassVar[int] = 2


class ArgumentError(UsageError, AssertionError):
    """A task file called a function of this package with a wrong argument. Also an ``AssertionError``."""


class PatternError(UsageError, re.error):
    """A regular expression is invalid. Also an ``re.error``."""


class MissingOptionalDependencyError(UsageError, ImportError):
    """An optional package is not installed. Also an ``ImportError``."""

    section: ClassVar[str] = "missing-packages"


class ConfigError(UsageError):
    """An option or a configuration file is wrong."""


class TaskError(UsageError):
    """A task's YAML file or its functions are wrong; the message names the file and the key."""

    section: ClassVar[str] = "wrong-task-files"


class DataError(UsageError):
    """The data of a task are missing, unreadable or of the wrong shape."""


class MissingDataError(DataError):
    """The data of a task were not found; the message names the places that were searched."""

    section: ClassVar[str] = "missing-data"


class AbsentDataError(MissingDataError):
    """A task of a benchmark has no data on this machine.

    The task is skipped if it was selected through a group. It is an error if it was selected by its own name.

    Args:
        message: the error message.
        kind: a few words on what is absent; skipped tasks are counted by it.
    """

    def __init__(self, message: str, kind: str = "no data here") -> None:
        super().__init__(message)
        self.kind = kind


class NothingToCompareError(UsageError, ValueError, IndexError):
    """A metric was called without a reference or a prediction. Task files catch it as the built-in errors."""


class ModelError(UsageError):
    """A model cannot be built: a missing folder, a wrong argument, a missing package or key."""

    section: ClassVar[str] = "models-that-cannot-be-built"


class EngineDiedError(LmmsEvalError):
    """A local engine died during a run. Nothing more can be asked; finished answers are kept."""

    section: ClassVar[str] = "the-run-ends-early"


class RunLockedError(UsageError):
    """Another live process owns the journal of this run."""

    section: ClassVar[str] = "runs-in-use"


class MediaError(LmmsEvalError):
    """A picture, video or sound cannot be found, read or encoded."""


class AbsentFileError(MediaError):
    """A document of the user's own data names a file that does not exist. No download can supply it."""


class ItemError(LmmsEvalError):
    """One document of a task is damaged. It fails; the other documents are asked and scored."""


class FunctionError(LmmsEvalError):
    """A function of a task raised (``__cause__``). The message names its YAML key and the line in its file."""


class JournalError(LmmsEvalError):
    """A journal of the run cannot be written or read back."""

    section: ClassVar[str] = "the-run-ends-early"


class JobStoreError(LmmsEvalError):
    """The server's list of jobs cannot be read or written."""


class RequestError(UsageError):
    """A request to the server is wrong; the message names the field."""


class RefusedRequestError(RequestError):
    """A request needs a flag that the server was not started with; the message names the flag."""


class RepeatedKeyError(RequestError):
    """Two different requests were submitted with the same key."""


class BusyError(LmmsEvalError):
    """A server accepts no more requests of this kind for the moment.

    Args:
        message: the error message.
        retry_after: seconds to wait before another attempt.
        is_clients: this client sends too many requests.
    """

    def __init__(self, message: str, retry_after: float, is_clients: bool = False) -> None:
        super().__init__(message)
        self.retry_after, self.is_clients = retry_after, is_clients


class AggregationError(LmmsEvalError):
    """The aggregation function of a task raised; the samples are kept."""

    section: ClassVar[str] = "the-run-ends-early"


class EvaluationServerError(LmmsEvalError):
    """An evaluation server refused a request, or cannot be reached (then ``status`` is ``None``)."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class JobFailedError(LmmsEvalError, RuntimeError):
    """A job of an evaluation server failed or was cancelled. Also a ``RuntimeError``."""


class JobTimeoutError(LmmsEvalError, TimeoutError):
    """A job of an evaluation server did not end in time. Also a ``TimeoutError``."""


class UnknownNameError(UsageError):
    """A name is not registered. The message suggests similar known names and adds ``hint`` after ``joint``."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "", joint: str = " ") -> None:
        self.kind, self.name = kind, name
        lower: dict[str, str] = {}
        for one in known:
            lower.setdefault(one.lower(), one)
        import difflib

        close = [lower[one] for one in difflib.get_close_matches(name.lower(), list(lower), n=5, cutoff=0.5)]
        message = f"unknown {kind} {name!r}"
        if close:
            message += f"; did you mean {', '.join(close)}?"
        if hint:
            message += f"{joint}{hint}"
        super().__init__(message)
