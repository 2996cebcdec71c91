"""Records the media of messages that a model receives without reporting what it sends of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loguru import logger

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import SentMedia
from lmms_eval.errors import MediaError
from lmms_eval.media.encode import encode_image
from lmms_eval.media.image import header
from lmms_eval.media.keeper import MediaKeeper
from lmms_eval.media.originals import original_of
from lmms_eval.media.reference import MediaRef, resolve
from lmms_eval.media.sent import AsSent, note_file, note_picture, recording


def given_media(messages: ChatMessages, keeper: MediaKeeper) -> tuple[SentMedia, ...]:
    """Return the media of messages as the task gave them, and keep those that have no file.

    Pictures are kept as the bytes that they were decoded from, or as PNG; a video as its file, or as the frames that it
    was given as; a sound as its file, or as wav. Media that cannot be read are left out: the model reports them.
    """
    with recording(keeper, origin="task") as sent:
        for message in messages.messages:
            for part in message.content:
                if part.type == "text":
                    continue
                for kind, one in _media_in(part.type, part.url):
                    try:
                        _note(kind, resolve(one))
                    except (MediaError, OSError, ValueError) as error:
                        logger.debug("a medium of the messages is not recorded: {}", error)
    return tuple(sent)


def _media_in(kind: str, value: Any) -> list[tuple[str, Any]]:
    """Return a medium with its kind. A video that is a list of its frames is several pictures."""
    if kind == "video" and isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return [("image", frame) for frame in value]
    return [(kind, value)]


def _note(kind: str, ref: MediaRef) -> None:
    if kind == "image" and ref.kind != "url":
        _note_picture(ref)
    elif kind == "audio" and ref.kind == "array":
        from lmms_eval.media.audio import encode_wav

        seconds = round(max(ref.array.shape) / ref.sampling_rate, 3)
        note_file(ref, "audio", seconds=seconds, sent=AsSent(lambda: encode_wav(ref.array, ref.sampling_rate)))
    elif kind == "image":
        note_file(ref, "image")
    else:
        note_file(ref, "audio" if kind == "audio" else "video")


def _note_picture(ref: MediaRef) -> None:
    image = ref.image
    if image is None:
        found = header(ref)
        sent = AsSent(ref.read_bytes, is_source=True)
        note_picture(ref, found.upright_size, sent=sent)
        return
    original = original_of(image)
    if original is None:
        note_picture(ref, image.size, sent=AsSent(lambda: encode_image(image), "pixels"))
    else:
        sent = AsSent(lambda: original.data, is_source=True)
        note_picture(ref, image.size, sha256=original.sha256, sent=sent)
