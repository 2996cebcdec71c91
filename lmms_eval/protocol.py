"""Chat messages for plugins, with their conversion to the message format of OpenAI-compatible servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.api import messages as base
from lmms_eval.api.messages import (
    ChatAudioContent,
    ChatContent,
    ChatImageContent,
    ChatMessage,
    ChatTextContent,
    ChatVideoContent,
)

if TYPE_CHECKING:
    from lmms_eval.media import VideoFrames, WireOptions

__all__ = [
    "ChatAudioContent",
    "ChatContent",
    "ChatImageContent",
    "ChatMessage",
    "ChatMessages",
    "ChatTextContent",
    "ChatVideoContent",
]

DEFAULT_FRAMES = 32
DEFAULT_MAX_FRAMES = 768
VIDEO_KEYS = frozenset(
    {
        "nframes",
        "fps",
        "min_frames",
        "max_frames",
        "max_pixels",
        "min_pixels",
        "total_pixels",
        "video_start",
        "video_end",
    }
)
Part = dict[str, Any]


class ChatMessages(base.ChatMessages):
    """A conversation that can be converted to the message format of OpenAI-compatible servers."""

    def to_openai_messages(
        self,
        video_kwargs: Mapping[str, Any] | None = None,
        pass_video_url: bool = False,
        image_options: WireOptions | None = None,
    ) -> list[dict[str, Any]]:
        """Return the ``messages`` of a chat completion request.

        Pictures become ``image_url`` parts: a remote URL is passed through, the bytes of a file are sent unchanged if
        possible, anything else is encoded once. Videos become one ``image_url`` part per frame. Sounds become
        ``audio_url`` parts; files and arrays are sent as data URLs.

        Args:
            video_kwargs: ``nframes`` (default 32), or ``fps`` with ``min_frames`` and ``max_frames`` (default 768);
                ``max_pixels`` of a frame; ``total_pixels`` of all frames. ``min_pixels`` is accepted without effect:
                frames are never enlarged.
            pass_video_url: send each video as one ``video_url`` part instead; local files as ``file://`` URLs.
            image_options: size limits and format of encoded pictures.

        Raises:
            MediaError: a medium cannot be found or read.
            ValueError: an unknown key in ``video_kwargs``.
        """
        writer = _Writer(dict(video_kwargs or {}), pass_video_url, image_options, stamped=False)
        return writer.write(self.messages)

    def to_qwen3_vl_openai_messages(
        self, video_kwargs: Mapping[str, Any] | None = None, image_options: WireOptions | None = None
    ) -> list[dict[str, Any]]:
        """Return the same as ``to_openai_messages``, with a text such as ``<1.5 seconds>`` before each video frame."""
        return _Writer(dict(video_kwargs or {}), False, image_options, stamped=True).write(self.messages)


class _Writer(Struct, frozen=True):
    video_kwargs: dict[str, Any]
    pass_video_url: bool
    image_options: WireOptions | None
    stamped: bool

    def write(self, messages: list[ChatMessage]) -> list[dict[str, Any]]:
        unknown = sorted(set(self.video_kwargs) - VIDEO_KEYS)
        if unknown:
            raise ValueError(f"unknown video_kwargs {unknown}: known are {sorted(VIDEO_KEYS)}")
        return [
            {"role": message.role, "content": [part for content in message.content for part in self._parts(content)]}
            for message in messages
        ]

    def _parts(self, content: ChatContent) -> Iterator[Part]:
        from lmms_eval.media import image_url

        if isinstance(content, ChatTextContent):
            yield {"type": "text", "text": content.text}
        elif isinstance(content, ChatImageContent):
            yield _image_part(image_url(content.url, self.image_options))
        elif isinstance(content, ChatAudioContent):
            from lmms_eval.media import resolve, wire_audio
            from lmms_eval.media.sent import note_file

            sound = resolve(content.url)
            if sound.kind == "url":
                note_file(sound, "audio")
            url = sound.url if sound.kind == "url" else wire_audio(sound).data_url
            yield {"type": "audio_url", "audio_url": {"url": url}}
        elif self.pass_video_url:
            yield {"type": "video_url", "video_url": {"url": _video_url(content.url)}}
        else:
            yield from self._frames(content)

    def _frames(self, content: ChatVideoContent) -> Iterator[Part]:
        from lmms_eval.media import image_url, shrink

        frames = self._read(content)
        limits = [int(most)] if (most := self.video_kwargs.get("max_pixels")) else []
        if total := self.video_kwargs.get("total_pixels"):
            limits.append(int(total) // len(frames))
        limit = max(1, min(limits)) if limits else None
        for image, seconds in zip(frames.images(), frames.times(), strict=True):
            if self.stamped:
                yield {"type": "text", "text": f"<{seconds:.1f} seconds>"}
            yield _image_part(image_url(shrink(image, max_pixels=limit), self.image_options))

    def _read(self, content: ChatVideoContent) -> VideoFrames:
        from lmms_eval.media import Sampling, read_frames

        given = content.url if isinstance(content.url, Mapping) else {}
        settings = self.video_kwargs
        fps = settings.get("fps")
        count = settings.get("nframes")
        if count is not None:
            fps = None
        elif fps is None:
            count = DEFAULT_FRAMES
        else:
            count = settings.get("max_frames", DEFAULT_MAX_FRAMES)
        sampling = Sampling(
            count=int(count),
            fps=fps,
            start=_first(content.start_time, given.get("video_start"), settings.get("video_start")),
            end=_first(content.end_time, given.get("video_end"), settings.get("video_end")),
        )
        frames = read_frames(content.url, sampling)
        wanted = int(settings.get("min_frames", 0))
        if fps is not None and len(frames) < wanted:
            frames = read_frames(content.url, replace(sampling, fps=None, count=wanted))
        return frames


def _image_part(url: str) -> Part:
    return {"type": "image_url", "image_url": {"url": url}}


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def _video_url(value: Any) -> str:
    from lmms_eval.errors import MediaError
    from lmms_eval.media import resolve

    if isinstance(value, str) and value.startswith("data:"):
        return value
    reference = resolve(value)
    if reference.kind == "url":
        return reference.url
    if reference.path is None:
        raise MediaError(f"{reference.describe()} has no address: pass_video_url needs a file or a URL")
    return reference.path.resolve().as_uri()
