"""Responses across runs (``--use_cache``): looked up before a request is prepared, kept when an answer arrives.

A cache that could return a wrong answer is worse than none: what has no exact key is skipped and counted.
"""

from __future__ import annotations

import math
import sqlite3
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from loguru import logger

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import GeneratedImage, Request, Response
from lmms_eval.api.response import is_invisible
from lmms_eval.engine.cache_file import CacheFile, Row, is_damage
from lmms_eval.engine.cache_key import CacheKeys, is_sampled
from lmms_eval.engine.images import images_of, mapped_pictures
from lmms_eval.engine.records import response_from_record, response_record
from lmms_eval.errors import UsageError
from lmms_eval.storage import codec

COUNTED = ("hit", "stored", "skipped", "failed", "damaged")
IMAGES = "images"
"""Key of a row's record: the bytes of its pictures by their hash."""
_ROW_ERRORS = (ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True, slots=True)
class Hit:
    """A response under the asking request's id, and the prompt's fingerprint when it was asked."""

    response: Response
    prompt: str


class ResponseCache:
    """The cache as one run sees it; safe from several threads.

    Args:
        file: the database.
        keys: ``None`` if nothing tells this model from others: everything is skipped then.
        model: its name, for ``lmms-eval cache stats``.
        defaults: generation options in the model's own arguments.
    """

    def __init__(
        self, file: CacheFile, keys: CacheKeys | None, model: str, defaults: Mapping[str, Any] | None = None
    ) -> None:
        self.file, self._keys, self._model = file, keys, model
        self._is_sampling = is_sampled(defaults or {})
        self._counts = dict.fromkeys(COUNTED, 0)
        self._lock = threading.Lock()
        self._has_warned = False

    def key(self, request: Request, build_messages: Callable[[], ChatMessages]) -> str | None:
        """The request's key; ``None``, and counted, if it has none."""
        is_generation = request.kind != "loglikelihood"
        if (
            self._keys is None
            or request.kind == "generate_until_multi_round"
            or (is_generation and (self._is_sampling or is_sampled(request.generation)))
        ):
            self._count("skipped")
            return None
        try:
            return self._keys.key(request, build_messages())
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001 - task functions may raise anything: preparing the request tells
            logger.debug("{} is not cached: {}: {}", request.id, type(error).__name__, error)
            self._count("skipped")
            return None

    def get(self, key: str, request_id: str) -> Hit | None:
        """Find the answer to this key, as the answer to this request."""
        try:
            row = self.file.get(key)
            if row is None:
                return None
            record = codec.loads(row.record)
            found = {**record, "id": request_id, "cached": True}
            response = with_images(response_from_record(found), record.get(IMAGES, {}))
        except sqlite3.Error as error:
            self._failed(error)
            return None
        except _ROW_ERRORS as error:
            self._failed(error)
            return None
        self._count("hit")
        return Hit(response, record.get("prompt", ""))

    def put(self, key: str, response: Response, prompt: str) -> None:
        """Keep a good response; errors and blank answers are not kept."""
        if not is_good(response):
            return
        kept = replace(response, request_id="", latency=None, attempts=1, batch=(), messages=(), is_cached=False)
        try:
            record = response_record(kept, prompt)
            if images := images_of(kept):
                record[IMAGES] = {image.sha256: image.data for image in images}
            if self.file.put(key, Row(self._model, codec.dumps(record))):
                self._count("stored")
        except (sqlite3.Error, codec.VolatileValue) as error:
            self._failed(error)

    def counts(self) -> dict[str, int]:
        """By outcome; ``damaged`` counts rows that were deleted, ``failed`` look-ups and writes that did not work."""
        with self._lock:
            return {**self._counts, "damaged": self.file.damaged_rows}

    def close(self) -> None:
        self.file.close()

    def _count(self, name: str) -> None:
        with self._lock:
            self._counts[name] += 1

    def _failed(self, error: Exception) -> None:
        """The run goes on without the cache's help."""
        self._count("failed")
        with self._lock:
            is_first, self._has_warned = not self._has_warned, True
        if is_first:
            logger.warning("the response cache {} failed: {}: {}", self.file.path, type(error).__name__, error)
        if isinstance(error, sqlite3.Error) and is_damage(error):
            self.file.repair()


def with_images(response: Response, data: Mapping[str, bytes]) -> Response:
    """The response with the bytes of its pictures. Raises ``KeyError`` if one is missing."""

    def whole(image: GeneratedImage) -> GeneratedImage:
        return replace(image, data=data[image.sha256])

    parts = tuple(part if isinstance(part, str) else whole(part) for part in response.parts)
    messages = tuple(mapped_pictures(message, whole) for message in response.tool_messages)
    return replace(response, parts=parts, tool_messages=messages)


def is_good(response: Response) -> bool:
    """Tell whether a response is worth keeping: no error, no blank text without a picture."""
    if response.error is not None:
        return False
    if response.parts:
        return all(image.data is not None for image in images_of(response))
    if response.loglikelihood is not None:
        return not math.isnan(response.loglikelihood)
    texts = response.rounds if response.rounds is not None else (response.text,)
    return bool(texts) and all(text is not None and not is_invisible(text) for text in texts)
