"""Pictures that models make: each stored once under its hash, before any record refers to it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lmms_eval.api.interleaved import InterleavedText, media_type_of
from lmms_eval.api.request import GeneratedImage, Part, Response, SentMessage
from lmms_eval.errors import JournalError
from lmms_eval.storage.atomic import replacing

FOLDER = "images"
"""Beside the samples files; without ``--output_path`` in the run's folder."""


class ImageFolder:
    """The pictures of a run; safe from several threads.

    Args:
        path: where they are kept; made with the first one.
        others: where an earlier start may have kept them; what is found there is copied.
    """

    def __init__(self, path: Path, others: Sequence[Path] = ()) -> None:
        self.path, self._others = path.absolute(), tuple(others)
        self._lock = threading.Lock()
        self._known: set[str] = set()
        """Names of files that had their hash when this process wrote or first met them."""

    def take_in(self, response: Response) -> Response:
        """The response with its pictures on disk; ``malformed`` where one is no picture, or not what it says it is.

        Raises:
            JournalError: a file could not be written.
        """
        if not response.parts and not response.tool_messages:
            return response
        problem = next((text for image in images_of(response) if (text := self._problem(image))), "")
        if problem:
            return Response.failure(response.request_id, "malformed", problem, response.attempts)
        for image in images_of(response):
            if image.data is not None:
                self.keep(image, image.data)
        messages = tuple(
            mapped_pictures(message, lambda image: replace(image, data=None)) for message in response.tool_messages
        )
        return replace(response, parts=self.located(response.parts), tool_messages=messages)

    def located(self, parts: Iterable[Part]) -> tuple[Part, ...]:
        """The parts with the places of the files instead of their bytes."""
        return tuple(
            part if isinstance(part, str) else replace(part, data=None, path=str(self.path / part.file_name))
            for part in parts
        )

    def keep(self, image: GeneratedImage, data: bytes) -> None:
        """Write a picture, unless it is there.

        Raises:
            JournalError: the file system refused (full disk, quota, lost mount).
        """
        with self._lock:
            if self._is_there(image):
                return
            path = self.path / image.file_name
            try:
                with replacing(path) as file:
                    file.write(data)
            except OSError as error:
                if not _has_hash(path, image.sha256):  # else another process has written the same one
                    raise JournalError(
                        f"cannot write the picture {path}: {error.strerror or error}; what was finished before is "
                        "kept: make room and start the same command again"
                    ) from error
            self._known.add(image.file_name)

    def holds(self, image: GeneratedImage) -> bool:
        """Tell whether the file is there and has its hash; one that an earlier start kept elsewhere is brought here.

        Raises:
            JournalError: it could not be copied.
        """
        with self._lock:
            if self._is_there(image):
                return True
        for folder in self._others:
            path = folder / image.file_name
            if _has_hash(path, image.sha256):
                self.keep(image, path.read_bytes())
                return True
        return False

    def read(self, image: GeneratedImage) -> bytes:
        """The file's bytes. Raises ``JournalError`` if it is gone."""
        path = self.path / image.file_name
        try:
            return path.read_bytes()
        except OSError as error:
            raise JournalError(f"cannot read the picture {path}: {error.strerror or error}") from error

    def _is_there(self, image: GeneratedImage) -> bool:
        if image.file_name in self._known:
            return True
        is_there = _has_hash(self.path / image.file_name, image.sha256)
        if is_there:
            self._known.add(image.file_name)
        return is_there

    def _problem(self, image: GeneratedImage) -> str:
        if image.data is None:
            return "" if self.holds(image) else f"a picture without bytes ({image.sha256})"
        if media_type_of(image.data) != image.media_type:
            return f"a picture of {len(image.data)} bytes that is no {image.media_type.rpartition('/')[2]} file"
        is_named = hashlib.sha256(image.data).hexdigest() == image.sha256
        return "" if is_named else f"a picture whose bytes do not have its hash {image.sha256}"


def images_of(response: Response) -> list[GeneratedImage]:
    """Pictures that the model made, and those of its tools."""
    shown = [part.picture for message in response.tool_messages for part in message.content]
    return [part for part in (*response.parts, *shown) if isinstance(part, GeneratedImage)]


def mapped_pictures(message: SentMessage, change: Callable[[GeneratedImage], GeneratedImage]) -> SentMessage:
    """Return the message with its pictures changed."""
    parts = (part if part.picture is None else replace(part, picture=change(part.picture)) for part in message.content)
    return replace(message, content=tuple(parts))


def parts_record(parts: Iterable[Part], with_paths: bool = False) -> list[Any]:
    """Parts as JSON: texts as they are, pictures by hash and media type (and place, for other processes)."""
    return [part if isinstance(part, str) else _image_record(part, with_paths) for part in parts]


def _image_record(image: GeneratedImage, with_path: bool) -> dict[str, Any]:
    record = {"sha256": image.sha256, "media_type": image.media_type}
    return {**record, "path": image.path} if with_path else record


def _image(record: Mapping[str, Any]) -> GeneratedImage:
    return GeneratedImage(record["sha256"], record["media_type"], path=record.get("path"))


def parts_from_record(record: Iterable[Any]) -> tuple[Part, ...]:
    """Undo ``parts_record``."""
    return tuple(part if isinstance(part, str) else _image(part) for part in record)


def value_parts(value: Any, with_paths: bool = False) -> list[Any] | None:
    """The parts of an answer's value: of its text, or a list with those of each text; ``None`` if all are plain."""
    if isinstance(value, InterleavedText):
        return parts_record(value.parts, with_paths)
    if not isinstance(value, list):
        return None
    of_each = [value_parts(item, with_paths) for item in value]
    return of_each if any(of_each) else None


def value_with_parts(value: Any, parts: Sequence[Any]) -> Any:
    """Undo ``value_parts``."""
    if isinstance(value, list):
        return [
            value_with_parts(item, of_item) if of_item else item for item, of_item in zip(value, parts, strict=True)
        ]
    return InterleavedText(parts_from_record(parts))


def images_in(record: Mapping[str, Any]) -> list[GeneratedImage]:
    """Pictures of a response's or a document's journal record."""
    found: list[GeneratedImage] = []
    for owner in (record, *record.get("answers", ())):
        _collect(owner.get("parts"), found)
        for message in owner.get("tool_messages", ()):
            found += [GeneratedImage(*part["picture"]) for part in message["content"] if "picture" in part]
    return found


def _collect(value: Any, found: list[GeneratedImage]) -> None:
    if isinstance(value, Mapping):
        found.append(_image(value))
    elif isinstance(value, list):
        for item in value:
            _collect(item, found)


def _has_hash(path: Path, sha256: str) -> bool:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except OSError:
        return False
