"""Requests and responses: the names that authors of models import."""

from lmms_eval.api.response import (
    ErrorKind,
    GeneratedImage,
    Part,
    Response,
    ResponseError,
    SentCall,
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
    "ErrorKind",
    "GeneratedImage",
    "Part",
    "Request",
    "RequestKind",
    "Response",
    "ResponseError",
    "SentCall",
    "SentMedia",
    "SentMessage",
    "SentPart",
    "Sight",
    "Thoughts",
    "Usage",
    "sent_media",
    "task_of",
]
