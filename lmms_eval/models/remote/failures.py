"""Errors of vendors' packages as the kinds of failure that the retry layer knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from lmms_eval.models.openai.errors import AttemptError, redact, shorten, status_error

_UNREACHABLE = frozenset(
    {
        "ConnectError",
        "ConnectTimeout",
        "ClientConnectorError",
        "ClientConnectorDNSError",
        "ConnectionRefusedError",
        "ConnectionTimeoutError",
    }
)
"""Classes of HTTP libraries for a connection that could not be opened."""
_TIMEOUT = frozenset({"TimeoutError", "ReadTimeout", "WriteTimeout", "PoolTimeout", "APITimeoutError", "Timeout"})
_MALFORMED = frozenset(
    {"JSONDecodeError", "ValidationError", "APIResponseValidationError", "UnknownApiResponseError", "ContentTypeError"}
)


@dataclass(frozen=True, slots=True)
class Failures:
    """Turns errors of one server into ``AttemptError``."""

    shown: str
    """The address, for people."""
    key_name: str
    """The environment variable that holds the key."""
    timeout: float
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def of_status(self, status: int, body: Any, headers: Mapping[str, str]) -> AttemptError:
        """An HTTP answer other than 200. ``body``: decoded, or its text."""
        raw = body.encode() if isinstance(body, str) else orjson.dumps(body, default=str)
        return self.redacted(status_error(status, raw, headers, self.shown, self.key_name))

    def of_transport(self, error: BaseException) -> AttemptError:
        """No answer, or one that the package could not read."""
        names = error_names(error)
        reason = shorten(str(error)) or type(error).__name__
        if names & _UNREACHABLE:
            message = f"cannot reach {self.shown}: {reason}; is the server running, and is base_url right?"
            return self.redacted(AttemptError("connection", message, unreachable=True))
        if names & _TIMEOUT:
            message = f"no answer from {self.shown} within {self.timeout:g} s (timeout=...)"
            return AttemptError("timeout", message)
        if names & _MALFORMED:
            return self.redacted(AttemptError("malformed", f"{self.shown} sent no valid answer: {reason}"))
        message = f"the connection to {self.shown} broke: {type(error).__name__}: {reason}"
        return self.redacted(AttemptError("connection", message))

    def malformed(self, what: str, *, retry: bool | None = None) -> AttemptError:
        """A readable answer without what it must hold."""
        message = f"{self.shown} sent no valid answer: {shorten(what)}"
        return self.redacted(AttemptError("malformed", message, retry=retry))

    def redacted(self, error: AttemptError) -> AttemptError:
        error.args = (redact(str(error), self.secrets),)
        return error


def error_names(error: BaseException) -> set[str]:
    """Names of the classes of an error and of all that led to it."""
    return {kind.__name__ for cause in _chain(error) for kind in type(cause).__mro__}


def own_failure(error: BaseException) -> AttemptError | None:
    """The failure of ours that a package has wrapped in an error of its own."""
    return next((cause for cause in _chain(error) if isinstance(cause, AttemptError)), None)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
