"""Opening what a prompt shows, for back ends that send it nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lmms_eval.api.messages import ChatAudioContent, ChatImageContent, ChatMessages, ChatVideoContent
from lmms_eval.models.remote.media import Frames, read_video

FRAMES = 8
"""Frames that a video must give."""


def open_media(messages: ChatMessages) -> None:
    """Decode every picture and sound of a conversation, and some frames of every video.

    Raises:
        MediaError: one is missing, damaged or of another kind.
    """
    for message in messages.messages:
        for part in message.content:
            if isinstance(part, ChatImageContent):
                _picture(part.url)
            elif isinstance(part, ChatAudioContent):
                from lmms_eval.media import load_audio

                load_audio(part.url)
            elif isinstance(part, ChatVideoContent):
                if isinstance(part.url, Sequence) and not isinstance(part.url, str | bytes | bytearray):
                    for frame in part.url:
                        _picture(frame)
                else:
                    read_video(part, Frames(FRAMES))


def _picture(value: Any) -> None:
    from lmms_eval.media import load_rgb

    load_rgb(value)
