"""Errors of foreign code as the reasons of failed samples."""

from __future__ import annotations

from loguru import logger

from lmms_eval.api.request import ErrorKind, Response
from lmms_eval.errors import FunctionError, ItemError, LmmsEvalError, MediaError
from lmms_eval.utils.absent_names import told


def failure(doing: str, error: BaseException) -> str:
    """The message of an error of ours, else ``DOING raised TYPE: MESSAGE``; the traceback is logged at DEBUG."""
    logger.opt(exception=error).debug("{} failed", doing)
    return str(error) if isinstance(error, LmmsEvalError) else f"{doing} raised {told(error)}"


def not_sent(request_id: str, doing: str, error: Exception) -> Response:
    """The response to a request whose preparation raised."""
    cause = error.__cause__ if isinstance(error, FunctionError) else error
    kind: ErrorKind = "internal"
    if isinstance(cause, ItemError):
        kind = "document"
    elif isinstance(cause, MediaError | OSError):
        kind = "media"
    return Response.failure(request_id, kind, failure(doing, error))
