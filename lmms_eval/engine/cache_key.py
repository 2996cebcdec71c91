"""Keys of the response cache: each tells one question to one model from every other."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from typing import Any

import orjson

from lmms_eval.api.messages import ChatMessages, ChatTextContent, ChatVideoContent
from lmms_eval.api.request import Request
from lmms_eval.api.task import Task
from lmms_eval.media import digest
from lmms_eval.storage import codec

SCHEME = 1
"""Raised whenever keys come to mean something else."""
COUNTS = ("n", "best_of", "num_return_sequences")
_CONTENT = frozenset({"bytes", "array", "path", "url", "video", "image", "audio"})


class CacheKeys:
    """Keys of one model's requests.

    Args:
        identity: all that fixes the model's answers beside the request, without secrets and run-only arguments.
        reads_documents: the model looks at the task's documents itself, so the document is part of the key.

    Raises:
        VolatileValue: ``identity`` holds a value that has no lasting form.
    """

    def __init__(self, identity: Mapping[str, Any], reads_documents: bool) -> None:
        self._identity = _hash(identity)
        self._reads_documents = reads_documents
        self._tasks: dict[str, str] = {}
        self._lock = threading.Lock()

    def key(self, request: Request, messages: ChatMessages) -> str:
        """SHA-256, hexadecimal.

        Raises:
            MediaError: a picture, video or sound cannot be read.
            VolatileValue: a generation option or a part of a message has no lasting form.
        """
        # Not among the parts of every key, so that answers to stated stops keep theirs.
        stop = {"implied_stop": request.implied_stop} if request.implied_stop else {}
        return _hash(
            {
                "scheme": SCHEME,
                "model": self._identity,
                "kind": request.kind,
                "messages": [[m.role, [_part(part) for part in m.content]] for m in messages.messages],
                "generation": dict(request.generation),
                "continuation": [request.continuation, request.implied_delimiter],
                "repeat": request.repeat,
                "document": self._document(request) if self._reads_documents else None,
                **stop,
            }
        )

    def _document(self, request: Request) -> list[Any]:
        task = self._task(request.task)
        return [task, request.doc_id, request.round, request.index, request.seed, request.context]

    def _task(self, task: Task) -> str:
        with self._lock:
            if task.name not in self._tasks:
                parts = {part: value for part, value in task.fingerprint().items() if part != "scoring"}
                self._tasks[task.name] = _hash({"name": task.name, "parts": parts})
            return self._tasks[task.name]


def is_sampled(options: Mapping[str, Any]) -> bool:
    """Tell whether generation by these options may give another answer the next time."""
    return (
        bool(options.get("do_sample"))
        or _number(options.get("temperature")) > 0
        or any(_number(options.get(name)) > 1 for name in COUNTS)
        or any(_holds_sampling(value) for value in options.values())
    )


def _holds_sampling(value: Any) -> bool:
    """Return whether an option is a mapping that samples, as it is or as JSON text (``extra_body``, ...)."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return True  # not understood: taken for sampling, so that nothing wrong is kept
    return isinstance(value, Mapping) and is_sampled(value)


def _number(value: Any) -> float:
    try:
        return float(value or 0)
    except (TypeError, ValueError):
        return float("inf")  # not understood: taken for sampling, so that nothing wrong is kept


def _part(part: Any) -> list[Any]:
    if isinstance(part, ChatTextContent):
        return ["text", part.text]
    times = [part.start_time, part.end_time] if isinstance(part, ChatVideoContent) else []
    return [part.type, _media(part.url), *times]


def _media(value: Any) -> Any:
    if isinstance(value, list | tuple):  # frames
        return [_media(item) for item in value]
    if isinstance(value, Mapping):  # content, and what is said of it (times, frame counts, ...)
        return [digest(value), {str(name): item for name, item in value.items() if name not in _CONTENT}]
    return digest(value)


def _hash(value: Any) -> str:
    return hashlib.sha256(orjson.dumps(codec.encode(value), option=orjson.OPT_SORT_KEYS)).hexdigest()
