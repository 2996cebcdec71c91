"""Errors of a single attempt, classified by the reaction to them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from lmms_eval.api.request import ErrorKind
from lmms_eval.errors import LmmsEvalError
from lmms_eval.utils.concurrency import is_rate_limit_error
from lmms_eval.utils.redaction import REDACTED, redact_text

MAX_SHOWN = 300
"""Maximum number of characters of a server's message."""
RETRIED: frozenset[ErrorKind] = frozenset({"rate_limit", "server_error", "timeout", "connection", "malformed"})
OVERLOADED = (503, 529)
"""Statuses that some servers use instead of 429, which their message shows."""
_CONTEXT = (
    "context_length", "context length", "maximum context", "too many tokens", "prompt is too long", "input token count",
)  # fmt: skip
_OTHER_LENGTH = "max_completion_tokens"
_REFUSED = ("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation")
STATUS_OF_TYPE: Mapping[str, int] = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
    "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500, "timeout_error": 504,
    "overloaded_error": 529,
}  # fmt: skip
"""The status that Anthropic gives a request for an error of this type."""
_BAD_KEY = b"API_KEY_INVALID"
"""Gemini reports a wrong key as a bad request."""
_OF_CONNECTOR = re.compile(r"^Cannot connect to host \S+ ssl:\S+ \[(.+)\]$", re.DOTALL)
"""Matches aiohttp's message, whose host and ssl repeat the address or do not concern it."""
_QUOTA = ("insufficient_quota", "billing_hard_limit_reached")
_UNREACHABLE = frozenset({
    "ConnectError", "ConnectTimeout", "ClientConnectorError", "ClientConnectorDNSError", "ConnectionRefusedError",
    "ConnectionTimeoutError",
})  # fmt: skip
"""Exception classes of HTTP libraries for connections that could not be opened."""
_TIMEOUT = frozenset({"TimeoutError", "ReadTimeout", "WriteTimeout", "PoolTimeout", "APITimeoutError", "Timeout"})
_MALFORMED = frozenset(
    {"JSONDecodeError", "ValidationError", "APIResponseValidationError", "UnknownApiResponseError", "ContentTypeError"}
)


class AttemptError(LmmsEvalError):
    """One attempt failed.

    Args:
        retry: whether another attempt may help; by default this follows from the kind.
        retry_after: the seconds that the server asks to wait.
        unreachable: whether no connection could be opened.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        retry: bool | None = None,
        retry_after: float | None = None,
        unreachable: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind
        self.retry = kind in RETRIED if retry is None else retry
        self.retry_after = retry_after
        self.unreachable = unreachable


def status_error(
    status: int, raw: bytes, headers: Mapping[str, str], url: str, key_name: str = "OPENAI_API_KEY"
) -> AttemptError:
    """Return the failure of an HTTP answer with ``status`` and the body ``raw``.

    ``key_name`` is the environment variable of the key.
    """
    message, code = _read_error(raw)
    if status == 400 and _BAD_KEY in raw:
        status = 401
    shown = f"HTTP {status} from {url}" + (f": {message}" if message else "")
    if status in (401, 402, 403):
        hint = (
            f"check the key ({key_name} or the model argument api_key)" if status != 402 else "pay the account's bill"
        )
        return AttemptError("auth", f"{shown}; {hint}")
    if status == 429:
        if code in _QUOTA:
            return AttemptError("rate_limit", f"{shown}; the quota is used up", retry=False)
        return AttemptError("rate_limit", shown, retry_after=retry_after(headers))
    if status == 408:
        return AttemptError("timeout", shown)
    if status in OVERLOADED and is_rate_limit_error(message):
        return AttemptError("rate_limit", shown, retry_after=retry_after(headers))
    if status >= 500 or status in (409, 425):
        return AttemptError("server_error", shown, retry_after=retry_after(headers))
    if 300 <= status < 400:
        return AttemptError("bad_request", f"{shown}: redirects are not followed; give the final address as base_url")
    return _client_error(status, shown, message, code)


def _client_error(status: int, shown: str, message: str, code: str) -> AttemptError:
    if code in _REFUSED:
        return AttemptError("refused", f"{shown}; the server's content policy refused the request")
    text = f"{code} {message}".lower()
    if status in (400, 413, 422) and any(mark in text for mark in _CONTEXT):
        return AttemptError("bad_request", f"{shown}; the request is longer than the model's context length")
    if status == 413:
        return AttemptError("bad_request", f"{shown}; the request is too large: lower max_image_bytes or max_pixels")
    if status == 404:
        hint = "check the model's name and base_url (it usually ends in /v1)"
        return AttemptError("bad_request", f"{shown}; {hint}")
    if _OTHER_LENGTH in message:
        return AttemptError("bad_request", f"{shown}; give reasoning_model=true for a model that wants it")
    return AttemptError("bad_request", shown)


def error_in_body(body: Mapping[str, Any], raw: bytes, url: str) -> AttemptError:
    """Return the failure in an answer of status 200 with an ``error`` object, as sent by some gateways."""
    error = body["error"]
    status = error.get("code", error.get("status")) if isinstance(error, Mapping) else None
    if isinstance(status, str) and status.isdigit():
        status = int(status)
    if isinstance(status, int) and 400 <= status < 600:
        return status_error(status, raw, {}, url)
    return AttemptError("malformed", f"{url} answered with an error instead of a completion: {_read_error(raw)[0]}")


def _read_error(raw: bytes) -> tuple[str, str]:
    """Return message and code of an error body; for an unknown form, the beginning of the body."""
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return shorten(raw.decode("utf-8", "replace")), ""
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        message = error.get("message") or error.get("detail") or raw.decode("utf-8", "replace")
        return shorten(str(message)), str(error.get("code") or error.get("type") or "")
    return shorten(str(error)), ""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait by ``Retry-After`` (seconds or an HTTP date) or ``retry-after-ms``."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if not value:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            seconds = _seconds_until(value)
        if 0 <= seconds < float("inf"):
            return seconds
    return None


def _seconds_until(date: str) -> float:
    try:
        when = parsedate_to_datetime(date)
    except (ValueError, TypeError):
        return -1.0
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def shorten(text: str) -> str:
    """Shorten a text to one line of at most ``MAX_SHOWN`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_SHOWN else line[: MAX_SHOWN - 1] + "…"


def redact(text: str, secrets: tuple[str, ...]) -> str:
    """Remove the secrets of this server, and everything that looks like a secret, from a text."""
    for secret in secrets:
        text = text.replace(secret, REDACTED)
    return redact_text(text)


@dataclass(frozen=True, slots=True)
class Failures:
    """Converts errors of one server to ``AttemptError``."""

    shown: str
    """The address for messages."""
    key_name: str
    """The environment variable of the key."""
    timeout: float
    secrets: tuple[str, ...] = field(default=(), repr=False)
    is_idle: bool = False
    """Whether ``timeout`` limits the silences of a stream, and not the whole answer."""

    def of_status(self, status: int, body: Any, headers: Mapping[str, str]) -> AttemptError:
        """Convert an HTTP answer with a status other than 200. ``body`` is decoded, or a text, or its bytes."""
        text = body.encode() if isinstance(body, str) else body
        raw = text if isinstance(text, bytes) else orjson.dumps(text, default=str)
        return self.redacted(status_error(status, raw, headers, self.shown, self.key_name))

    def of_transport(self, error: BaseException) -> AttemptError:
        """Convert an error without an answer, or with an answer that the package could not read."""
        names = error_names(error)
        reason = shorten(_OF_CONNECTOR.sub(r"\1", str(error))) or type(error).__name__
        if names & _UNREACHABLE:
            message = f"cannot reach {self.shown}: {reason}; is the server running, and is base_url right?"
            return self.redacted(AttemptError("connection", message, unreachable=True))
        if names & _TIMEOUT:
            message = f"no answer from {self.shown} within {self.timeout:g} s (timeout=...)"
            if self.is_idle:
                message = f"{self.shown} was silent for {self.timeout:g} s (idle_timeout=...)"
            return AttemptError("timeout", message)
        if names & _MALFORMED:
            return self.redacted(AttemptError("malformed", f"{self.shown} sent no valid answer: {reason}"))
        message = f"the connection to {self.shown} broke: {type(error).__name__}: {reason}"
        return self.redacted(AttemptError("connection", message))

    def malformed(self, what: str, *, retry: bool | None = None) -> AttemptError:
        """Return the failure of an answer without the expected content."""
        message = f"{self.shown} sent no valid answer: {shorten(what)}"
        return self.redacted(AttemptError("malformed", message, retry=retry))

    def redacted(self, error: AttemptError) -> AttemptError:
        error.args = (redact(str(error), self.secrets),)
        return error


def error_names(error: BaseException) -> set[str]:
    """Return the class names of an error and of all its causes."""
    return {kind.__name__ for cause in _chain(error) for kind in type(cause).__mro__}


def own_failure(error: BaseException) -> AttemptError | None:
    """Return the ``AttemptError`` that a package has wrapped in its own error."""
    return next((cause for cause in _chain(error) if isinstance(cause, AttemptError)), None)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
