"""Requests and responses: the names that authors of models import."""

from lmms_eval.api.records import Call, ErrorKind
from lmms_eval.api.response import (
    GeneratedImage,
    Part,
    Response,
    ResponseError,
    SentMedia,
    SentMessage,
    SentPart,
    Sight,
    Thoughts,
    Usage,
    sent_media,
)
from lmms_eval.api.task import Request, RequestKind, task_of

__all__ = [
    "Call",
    "ErrorKind",
    "GeneratedImage",
    "Part",
    "Request",
    "RequestKind",
    "Response",
    "ResponseError",
    "SentMedia",
    "SentMessage",
    "SentPart",
    "Sight",
    "Thoughts",
    "Usage",
    "sent_media",
    "task_of",
]
