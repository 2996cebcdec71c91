"""From conversations to token ids and media, in preparation threads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lmms_eval.api.messages import ChatAudioContent, ChatImageContent, ChatMessages, ChatTextContent, ChatVideoContent
from lmms_eval.errors import MediaError, ModelError
from lmms_eval.models.offline.settings import EngineSettings, read_template
from lmms_eval.models.openai.body import read_system_prompt
from lmms_eval.models.remote.media import Frames, bounds_of, read_video

TOKEN_BYTES = 8


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered conversation. Media stand in the order of their placeholders."""

    token_ids: list[int]
    images: list[Any] = field(default_factory=list)
    """PIL images, RGB."""
    videos: list[Any] = field(default_factory=list)
    """``(frames, height, width, 3)`` arrays, or paths and URLs for an engine that decodes them."""
    sounds: list[Any] = field(default_factory=list)
    """``lmms_eval.media.audio.Audio``."""

    @property
    def nbytes(self) -> int:
        """Memory that the prompt holds."""
        from lmms_eval.media.image import memory_bytes

        pictures = sum(memory_bytes(image) for image in self.images)
        films = sum(int(getattr(video, "nbytes", 0)) for video in self.videos)
        sounds = sum(int(sound.samples.nbytes) for sound in self.sounds)
        return TOKEN_BYTES * len(self.token_ids) + pictures + films + sounds


class PromptBuilder:
    """Renders with the model's own chat template. Thread-safe.

    Args:
        settings: the arguments.
        decodes_videos: the engine takes paths and URLs of whole videos.
    """

    def __init__(self, settings: EngineSettings, decodes_videos: bool) -> None:
        self.system_prompt = read_system_prompt(settings.system_prompt)
        self._settings, self._decodes_videos = settings, decodes_videos
        self._frames = Frames(settings.max_frames_num, settings.video_fps)
        self._template = read_template(settings.chat_template)
        self._tokenizer, self._renderer = _load(settings, self._template)

    def build(self, messages: ChatMessages) -> Prompt:
        """The prompt of a conversation.

        Raises:
            MediaError: a picture, video or sound cannot be read.
        """
        prompt = Prompt([])
        turns = [
            {"role": message.role, "content": [item for part in message.content for item in self._part(part, prompt)]}
            for message in messages.messages
        ]
        if self.system_prompt:
            turns = [turn for turn in turns if turn["role"] != "system"]
            turns.insert(0, {"role": "system", "content": [{"type": "text", "text": self.system_prompt}]})
        extra = {"chat_template": self._template} if self._template else {}
        text = self._renderer.apply_chat_template(
            turns, tokenize=False, add_generation_prompt=True, **extra, **self._settings.chat_template_kwargs
        )
        # The template has written what marks the beginning: the tokenizer must not do so again.
        prompt.token_ids.extend(self._tokenizer.encode(text, add_special_tokens=False))
        return prompt

    def _part(
        self, part: ChatTextContent | ChatImageContent | ChatVideoContent | ChatAudioContent, prompt: Prompt
    ) -> list[dict[str, Any]]:
        if isinstance(part, ChatTextContent):
            return [{"type": "text", "text": part.text}]
        if isinstance(part, ChatImageContent):
            from lmms_eval.media.image import load_rgb

            prompt.images.append(load_rgb(part.url, max_pixels=self._settings.max_pixels))
            return [{"type": "image"}]
        if isinstance(part, ChatAudioContent):
            from lmms_eval.media.audio import load_audio

            prompt.sounds.append(load_audio(part.url))
            return [{"type": "audio"}]
        prompt.videos.append(self._address(part) if self._decodes_videos else read_video(part, self._frames).array)
        return [{"type": "video"}]

    def _address(self, part: ChatVideoContent) -> str:
        from lmms_eval.media.reference import resolve
        from lmms_eval.media.sent import note_file

        film = resolve(part.url)
        if bounds_of(part) != (None, None) or film.kind not in ("path", "url"):
            raise MediaError(f"{film.describe()}: this engine takes whole videos by path or URL only; use vllm or hf")
        note_file(film, "video")
        return film.url if film.kind == "url" else str(film.path)


def _load(settings: EngineSettings, template: str | None) -> tuple[Any, Any]:
    """The tokenizer, and what has the chat template: it, or the processor where the template stands only there.

    Raises:
        ModelError: they cannot be loaded, or there is no template.
    """
    from transformers import AutoProcessor, AutoTokenizer

    trust = settings.trust_remote_code
    try:
        tokenizer = AutoTokenizer.from_pretrained(settings.model, trust_remote_code=trust)
        if template or getattr(tokenizer, "chat_template", None):
            return tokenizer, tokenizer
        processor = AutoProcessor.from_pretrained(settings.model, trust_remote_code=trust)
    except (OSError, ValueError, ImportError, KeyError) as error:
        raise ModelError(f"the tokenizer of {settings.model} cannot be loaded: {error}") from error
    if not getattr(processor, "chat_template", None):
        raise ModelError(f"{settings.model} has no chat template: give chat_template=FILE")
    return tokenizer, processor
