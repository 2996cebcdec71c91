"""Rendering of conversations to token ids and media, in preparation threads."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from lmms_eval.api.messages import (
    ChatAudioContent,
    ChatImageContent,
    ChatMessage,
    ChatMessages,
    ChatTextContent,
    ChatVideoContent,
)
from lmms_eval.api.request import Sight
from lmms_eval.errors import MediaError, ModelError
from lmms_eval.models.argument_names import read_system_prompt
from lmms_eval.models.chat_template import (
    NO_TEMPLATE,
    plain_context,
    template_of,
    template_options,
    template_variables,
    warn_of_unread,
)
from lmms_eval.models.hf.batching import RefusedError
from lmms_eval.models.offline.settings import EngineSettings, read_template
from lmms_eval.models.remote.media import Frames, bounds_of, chosen_frames, is_listed, read_pictures, read_video
from lmms_eval.models.windows import NO_PREFIX, context_length, pair_tokens, prefix_token, scored_windows, text_tokens

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from lmms_eval.api.generation import RequestLimits
    from lmms_eval.api.request import Request
    from lmms_eval.media import Bounds


UNKNOWN_FPS = 24.0
"""The rate that the processors of transformers assume for a video of unknown rate."""
TOKEN_BYTES = 8
_ENDING = 64
"""Characters, enough for an opening tag and the white space after it."""
_PROBE = "a text that no template contains"


def read_film(part: ChatVideoContent, frames: Frames, bounds: Bounds) -> tuple[npt.NDArray[np.uint8], dict[str, Any]]:
    """Read the frames of a video. A list contains the frames themselves, as if recorded at ``frames.fps``.

    Returns:
        The frames as ``(frames, height, width, 3)``, RGB, in order of time, and the properties of the video by the
        names of transformers' ``VideoMetadata``.

    Raises:
        MediaError: the video or one of its pictures cannot be read.
    """
    import numpy as np

    if is_listed(part.url):
        images = read_pictures(part, frames, bounds)
        size = images[0].size
        array = np.stack([np.asarray(image if image.size == size else image.resize(size)) for image in images])
        return array, _film_metadata(chosen_frames(part.url, frames), frames.fps, len(part.url))
    from lmms_eval.media import fit
    from lmms_eval.media.video import probe

    found = read_video(part, frames)
    each = frames.bounds_of(found, bounds)
    array, (height, width) = found.array, found.array.shape[1:3]
    if each.size((width, height)) != (width, height):
        array = np.stack([np.asarray(fit(image, each)) for image in found.images()])
    total = max(probe(part.url).frames, found.indices[-1] + 1)
    return array, _film_metadata(found.indices, found.fps, total)


def _film_metadata(indices: Sequence[int], fps: float | None, total: int) -> dict[str, Any]:
    """Return the properties of a video of ``total`` frames. The frames must not be sampled again."""
    rate = fps or UNKNOWN_FPS
    return {
        "total_num_frames": total,
        "fps": rate,
        "duration": total / rate,
        "video_backend": "pyav",
        "frames_indices": list(indices),
        "do_sample_frames": False,
    }


class EnginePrompt(Struct, frozen=True):
    """A rendered conversation, with the media in the order of their placeholders."""

    token_ids: list[int]
    images: list[Any] = field(default_factory=list)
    """PIL images, RGB."""
    videos: list[Any] = field(default_factory=list)
    """Results of ``read_film``, or paths and URLs for an engine that decodes them."""
    sounds: list[Any] = field(default_factory=list)
    """``lmms_eval.media.audio.Audio``."""
    continuation: int = 0
    """For likelihoods: the number of continuation tokens at the end of ``token_ids``."""
    ending: str = ""
    """The last characters of the text, which may open a thought."""

    def sight(self, input_tokens: int | None) -> Sight | None:
        """Return the tokens of the pictures in an engine that counts ``input_tokens`` for the whole prompt.

        ``None`` without pictures, if the engine does not count tokens, or if sounds have tokens too.
        """
        placeholders = len(self.images) + len(self.videos)
        if not placeholders or self.sounds or input_tokens is None:
            return None
        tokens = input_tokens - len(self.token_ids) + placeholders
        return Sight(tokens=tokens) if tokens > placeholders else None

    @property
    def nbytes(self) -> int:
        """Size in memory."""
        from lmms_eval.media.image import memory_bytes

        pictures = sum(memory_bytes(image) for image in self.images)
        films = sum(0 if isinstance(video, str) else int(video[0].nbytes) for video in self.videos)
        sounds = sum(int(sound.samples.nbytes) for sound in self.sounds)
        return TOKEN_BYTES * len(self.token_ids) + pictures + films + sounds


class PromptRenderer:
    """Renders prompts for an engine, which may take whole videos by path and URL (``decodes_videos``). Thread-safe."""

    def __init__(self, settings: EngineSettings, decodes_videos: bool) -> None:
        self.system_prompt = read_system_prompt(settings.system_prompt)
        self._settings, self._decodes_videos = settings, decodes_videos
        self._frames, self._bounds = settings.frames, settings.bounds
        self._template = read_template(settings.chat_template)
        self.is_plain = self._template == NO_TEMPLATE
        self.tokenizer, self._renderer = _load(settings, self._template)
        self.variables = template_variables(self.template_text)
        """The variables of the chat template."""
        warn_of_unread(self.template_text, settings.template_options, settings.model)
        self._takes_parts = not self.is_plain and self._renders_parts()
        self._takes_videos = self._takes_parts and self._renders_videos()

    def limited(self, limits: RequestLimits | None) -> PromptRenderer:
        """Return a renderer with the media limits of a request in place of its own."""
        if limits is None:
            return self
        made = copy.copy(self)
        made._frames, made._bounds = self._frames.limited(limits), self._bounds.limited(limits)
        return made

    def has_generation_prompt(self, messages: ChatMessages) -> bool:
        """Return whether the prompt of a conversation ends with the generation prompt of a chat template."""
        is_begun = bool(messages.messages) and messages.messages[-1].role == "assistant"
        is_plain = self.is_plain or messages.is_plain
        return not is_plain and self._settings.add_generation_prompt and not is_begun

    @functools.cached_property
    def template_text(self) -> str:
        """The chat template, or an empty text."""
        return "" if self.is_plain else template_of(self._renderer, self._template)

    def build(
        self,
        messages: ChatMessages,
        scored: Request | None = None,
        generation: Mapping[str, Any] = MappingProxyType({}),
    ) -> EnginePrompt:
        """Render a conversation.

        Args:
            messages: the conversation.
            scored: the request for a likelihood, whose continuation is appended where the answer would begin.
            generation: the options of the request, which may include variables of the chat template.

        Raises:
            MediaError: a picture, video or sound cannot be read.
            RefusedError: the conversation has media but the template only takes texts, the template rejects it, or
                the continuation adds no token.
        """
        chosen = messages.messages
        if self.system_prompt:  # replaces that of the conversation
            leading = ChatMessage(role="system", content=[ChatTextContent(text=self.system_prompt)])
            chosen = [leading, *(message for message in chosen if message.role != "system")]
        prompt, is_plain = EnginePrompt([]), self.is_plain or messages.is_plain
        turns = [{"role": message.role, "content": self._content(message, prompt, is_plain)} for message in chosen]
        text = plain_context(turns, {}) if is_plain else self._rendered(turns, generation)
        # A template writes the start token itself, and the tokenizer must not add another one.
        bos = self.tokenizer.bos_token
        is_marked = not is_plain or bool(bos and text.startswith(bos))
        if scored is None:
            tokens = self.tokenizer.encode(text, add_special_tokens=not is_marked)
            return replace(prompt, token_ids=tokens, ending=text[-_ENDING:])
        text, continuation = scored.prompt_and_continuation(text, self.has_generation_prompt(messages))
        tokens, added = pair_tokens(self.tokenizer, text, continuation, special=not is_marked)
        if len(tokens) == added:
            raise RefusedError(NO_PREFIX)
        if added < 1:
            raise RefusedError(f"the continuation {continuation!r} adds no token to the prompt")
        return replace(prompt, token_ids=tokens, continuation=added)

    def build_windows(self, text: str, length: int | None) -> list[EnginePrompt]:
        """Return the windows over a text for an engine with a context of ``length`` tokens, one of them generated.

        Raises:
            RefusedError: the tokenizer has neither a start nor an end token, or the context is too short.
        """
        prefix = prefix_token(self.tokenizer)
        if prefix is None:
            raise RefusedError(NO_PREFIX)
        longest = (length or context_length(self.tokenizer)) - 2  # the last token of a window, and the generated one
        if longest < 1:
            raise RefusedError(f"a context of {length} tokens has no room for a window over a text")
        windows = scored_windows(text_tokens(self.tokenizer, text), prefix, longest)
        return [EnginePrompt([*before, *scored], continuation=len(scored)) for before, scored in windows]

    def _content(self, message: ChatMessage, prompt: EnginePrompt, is_plain: bool) -> str | list[dict[str, Any]]:
        """Return the parts of a message, or its text if the template takes texts. Media are appended to ``prompt``."""
        texts = [part.text for part in message.content if isinstance(part, ChatTextContent)]
        if len(texts) < len(message.content) and not self._takes_parts:
            reason = "a plain prompt has" if is_plain else "the chat template takes"
            raise RefusedError(f"{reason} texts alone here, and the request has a picture, video or sound")
        if self._takes_parts or is_plain:
            return [entry for part in message.content for entry in self._part(part, prompt)]
        return "\n".join(texts)

    def read_variables(self, generation: Mapping[str, Any]) -> dict[str, Any]:
        """Return the variables of ``variables_of`` that the chat template reads."""
        return {name: value for name, value in self.variables_of(generation).items() if name in self.variables}

    def variables_of(self, generation: Mapping[str, Any]) -> dict[str, Any]:
        """Return the chat template's variables for a request. Those of the request override those of the arguments."""
        return {**self._settings.template_options, **template_options(generation, self.variables)}

    def _rendered(self, turns: list[dict[str, Any]], generation: Mapping[str, Any] = MappingProxyType({})) -> str:
        """Render the text of a conversation. A final answer is left open, to be continued."""
        import jinja2

        is_begun = bool(turns) and turns[-1]["role"] == "assistant"
        extra = {"chat_template": self._template} if self._template else {}
        try:
            text: str = self._renderer.apply_chat_template(
                turns,
                tokenize=False,
                add_generation_prompt=self._settings.add_generation_prompt and not is_begun,
                continue_final_message=is_begun,
                **extra,
                **self.variables_of(generation),
            )
        except (jinja2.TemplateError, TypeError, ValueError, LookupError, AttributeError) as error:
            raise RefusedError(f"the chat template refuses the request: {type(error).__name__}: {error}") from error
        return text

    def _renders_parts(self) -> bool:
        """Return whether the template handles lists of parts. Those of text models fail on them, or print the list."""
        parts = [{"type": "text", "text": _PROBE}]
        try:
            text = self._rendered([{"role": "user", "content": parts}])
        except RefusedError:
            return False
        return str(parts) not in text

    def _renders_videos(self) -> bool:
        """Return whether the template writes something for a video. Otherwise its frames are sent as pictures."""
        text = {"type": "text", "text": _PROBE}
        try:
            both = self._rendered([{"role": "user", "content": [{"type": "video"}, text]}])
        except RefusedError:
            return False
        return both != self._rendered([{"role": "user", "content": [text]}])

    def _part(
        self, part: ChatTextContent | ChatImageContent | ChatVideoContent | ChatAudioContent, prompt: EnginePrompt
    ) -> list[dict[str, Any]]:
        if isinstance(part, ChatTextContent):
            return [{"type": "text", "text": part.text}]
        if isinstance(part, ChatImageContent):
            from lmms_eval.media.image import load_rgb

            prompt.images.append(load_rgb(part.url, bounds=self._bounds))
        elif isinstance(part, ChatAudioContent):
            from lmms_eval.media.audio import load_audio

            prompt.sounds.append(load_audio(part.url))
        elif not self._takes_videos:
            frames = read_pictures(part, self._frames, self._bounds)
            prompt.images.extend(frames)
            return [{"type": "image"} for _ in frames]
        elif self._decodes_videos:
            from lmms_eval.media.reference import resolve
            from lmms_eval.media.sent import note_file

            film = resolve(part.url)
            if bounds_of(part) != (None, None) or film.kind not in ("path", "url"):
                hint = "this engine takes whole videos by path or URL only; use vllm or hf"
                raise MediaError(f"{film.describe()}: {hint}")
            note_file(film, "video")
            prompt.videos.append(film.url if film.kind == "url" else str(film.path))
        else:
            prompt.videos.append(read_film(part, self._frames, self._bounds))
        return [{"type": part.type}]


def _load(settings: EngineSettings, template: str | None) -> tuple[Any, Any]:
    """Load the tokenizer, and the holder of the template: itself or the processor. Raises ``ModelError``."""
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
        raise ModelError(
            f"{settings.model} has no chat template: give chat_template=FILE, or chat_template={NO_TEMPLATE} for the "
            "plain context of base models"
        )
    return tokenizer, processor
