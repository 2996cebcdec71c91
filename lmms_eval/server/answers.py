"""Answers in the form of errors: which status stands for which error, and what readers on other machines are told."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse

from lmms_eval.errors import (
    BusyError,
    DataError,
    JobStoreError,
    JournalError,
    LmmsEvalError,
    MissingOptionalDependencyError,
    RefusedRequestError,
    RepeatedKeyError,
    UsageError,
)
from lmms_eval.http.guard import is_loopback
from lmms_eval.http.rates import retry_after
from lmms_eval.server.merging import NoCheckpointError
from lmms_eval.server.policy import without_paths
from lmms_eval.server.requests import InvalidBodyError
from lmms_eval.utils.redaction import redact_text

_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")


class NoJobError(UsageError):
    """There is no job of that name."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"Job {job_id[:80]} not found")


class WrongStateError(UsageError):
    """A job is not in the state that a request needs."""


_STATUSES: tuple[tuple[type[LmmsEvalError], int], ...] = (
    (NoJobError, 404),
    (NoCheckpointError, 404),
    (WrongStateError, 400),
    (RefusedRequestError, 403),
    (RepeatedKeyError, 409),
    (MissingOptionalDependencyError, 501),
    (JobStoreError, 507),
    (JournalError, 507),
    (DataError, 404),
    (UsageError, 400),
    (LmmsEvalError, 500),
)


def is_local(request: Request) -> bool:
    """Tell whether the client sits on this machine, and not behind a proxy that does."""
    host = request.client.host if request.client is not None else ""
    return is_loopback(host) and not any(name in request.headers for name in _FORWARDED)


def told(text: str, request: Request) -> str:
    """Return a text as this client may read it: without secrets, and without this machine's paths unless it is here."""
    text = redact_text(text)
    return text if is_local(request) else without_paths(text)


def answer_error(request: Request, error: Exception) -> JSONResponse:
    """Answer with an error of this package."""
    if isinstance(error, InvalidBodyError):
        details: list[dict[str, Any]] = [{**one, "msg": told(str(one["msg"]), request)} for one in error.details]
        return JSONResponse({"detail": details}, 422)
    if isinstance(error, BusyError):
        headers = {"retry-after": retry_after(error.retry_after)}
        return JSONResponse({"detail": str(error)}, 429 if error.is_clients else 503, headers)
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
    return JSONResponse({"detail": told(str(error), request)}, status)
