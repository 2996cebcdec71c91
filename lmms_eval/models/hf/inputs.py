"""From a request's messages to prompt text, pictures and sounds. Runs in preparation threads; touches no tokenizer."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lmms_eval.api.messages import (
    ChatAudioContent,
    ChatContent,
    ChatImageContent,
    ChatMessage,
    ChatMessages,
    ChatTextContent,
    ChatVideoContent,
)
from lmms_eval.api.request import ResponseError
from lmms_eval.models.chat_template import (
    NO_TEMPLATE,
    plain_context,
    template_of,
    template_options,
    template_variables,
    warn_of_unread,
)
from lmms_eval.models.hf.batching import RECOVERABLE, RefusedError
from lmms_eval.models.hf.options import HFOptions, Profile, text_or_file

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from PIL import Image

    from lmms_eval.api.request import Request
    from lmms_eval.media import Bounds
    from lmms_eval.models.hf.load import Loaded
    from lmms_eval.models.hf.settings import Settings


_MARK = re.compile(r"<image ?(\d+)>")


def interleave(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Each picture at the first ``<image N>`` (or ``<imageN>``) that names it within its message.

    Pictures count from 1. Those that no text names stay where they are, and so does every mark without a picture.
    """
    return [ChatMessage(role=message.role, content=_interleaved(message.content)) for message in messages]


def _interleaved(content: Sequence[ChatContent]) -> list[ChatContent]:
    images = [part for part in content if isinstance(part, ChatImageContent)]
    texts = [part.text for part in content if isinstance(part, ChatTextContent)]
    named = {int(number) for text in texts for number in _MARK.findall(text)} & set(range(1, len(images) + 1))
    moved = [images[number - 1] for number in named]
    left = set(named)
    result: list[ChatContent] = []
    for part in content:
        if isinstance(part, ChatTextContent):
            result += _with_images(part.text, images, left)
        elif not any(part is image for image in moved):
            result.append(part)
    return result


def _with_images(text: str, images: Sequence[ChatImageContent], left: set[int]) -> list[ChatContent]:
    """``text`` cut at the marks whose pictures have not been placed yet; those are taken out of ``left``."""
    result: list[ChatContent] = []
    start = 0
    for mark in _MARK.finditer(text):
        number = int(mark.group(1))
        if number not in left:
            continue
        left.discard(number)
        if mark.start() > start:
            result.append(ChatTextContent(text=text[start : mark.start()]))
        result.append(images[number - 1])
        start = mark.end()
    if start < len(text) or not result:
        result.append(ChatTextContent(text=text[start:]))
    return result


def append_prompt(messages: Sequence[ChatMessage], prompt: str) -> list[ChatMessage]:
    """``prompt`` behind the last text of the user's last message."""
    result = list(messages)
    for place in reversed(range(len(result))):
        if result[place].role != "user":
            continue
        content = list(result[place].content)
        last = max((i for i, part in enumerate(content) if isinstance(part, ChatTextContent)), default=None)
        found = content[last] if last is not None else None
        if last is not None and isinstance(found, ChatTextContent):
            content[last] = ChatTextContent(text=found.text + prompt)
        else:
            content.append(ChatTextContent(text=prompt))
        result[place] = ChatMessage(role="user", content=content)
        return result
    return result


_CHARACTERS_PER_TOKEN = 3.5
_PIXELS_PER_TOKEN = 28 * 28
_PICTURE_MIN_TOKENS = 64
_SOUND_TOKENS_PER_SECOND = 25
_STEP = 16
"""Pixels to which a processor is asked about widths and heights: asking takes 0.1 ms, so sizes that are nearly alike
share an answer."""


class Lengths:
    """Estimates for one model. Thread-safe.

    Args:
        processor: is asked for the tokens of a picture of a given size, where it can tell.
        image_options: keyword arguments that it gets with pictures.
    """

    def __init__(self, processor: Any, image_options: Mapping[str, Any]) -> None:
        self._count = getattr(processor, "_get_num_multimodal_tokens", None)
        self._image_options = dict(image_options)
        self._of_size = functools.lru_cache(maxsize=4096)(self._ask)

    def tokens(self, text: str, sizes: Iterable[tuple[int, int]], seconds: float = 0.0) -> float:
        """Tokens of a prompt with pictures of these widths and heights and ``seconds`` of sound."""
        rounded = [tuple(-(-side // _STEP) * _STEP for side in size) for size in sizes]
        media = sum(self._of_size(*size) for size in rounded) + seconds * _SOUND_TOKENS_PER_SECOND
        return len(text) / _CHARACTERS_PER_TOKEN + media

    def _ask(self, width: int, height: int) -> float:
        if self._count is not None:
            try:
                found = self._count(image_sizes=[(height, width)], **self._image_options).num_image_tokens
                return float(found[0])
            except RECOVERABLE:  # an interface that transformers keeps for vLLM: not every processor has it right
                self._count = None
        return max(_PICTURE_MIN_TOKENS, width * height / _PIXELS_PER_TOKEN)


_PLACEHOLDER_NAMES = ("image_token", "video_token", "audio_token", "fake_image_token", "boi_token")
_CONFIG_NAMES = ("image_token_id", "image_token_index", "video_token_id", "video_token_index", "audio_token_id")
_PLACE_PICTURES = ("FuyuProcessor", "InstructBlipProcessor")
"""Processors that put their picture before the text themselves, and refuse a text that says where."""
_NEEDS = {"image": ("image_processor",), "video": ("image_processor",)}
USUAL_SYSTEM_PROMPT = "You are a helpful assistant."
"""The system message that chat models are commonly trained with (``add_system_prompt``)."""
_MEDIA = {"image": "pictures", "video": "video", "audio": "sound"}


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A rendered prompt. ``error`` is set instead where the request cannot be rendered."""

    text: str = ""
    images: tuple[Image.Image, ...] = ()
    audios: tuple[npt.NDArray[np.float32], ...] = ()
    """Mono, at the model's sampling rate."""
    tokens: float = 0.0
    """Estimated prompt length; only compared, never reported."""
    alone: bool = False
    """It shares no batch."""
    has_template: bool = False
    """It ends with the generation prompt of a chat template."""
    error: ResponseError | None = None

    @property
    def kind(self) -> str:
        """Kinds of its media: only like prompts share a batch."""
        return f"{'image' if self.images else ''}{'audio' if self.audios else ''}"

    @property
    def nbytes(self) -> int:
        """Size in memory."""
        from lmms_eval.media.image import memory_bytes

        pictures = sum(memory_bytes(image) for image in self.images)
        return len(self.text) + pictures + sum(int(sound.nbytes) for sound in self.audios)


@dataclass(frozen=True, slots=True, eq=False)
class _Media:
    """Media of the parts of one conversation, in their order."""

    images: list[Image.Image] = field(default_factory=list)
    audios: list[npt.NDArray[np.float32]] = field(default_factory=list)


class InputBuilder:
    """Renders requests for one model. Thread-safe: nothing is changed after construction."""

    def __init__(self, loaded: Loaded, options: HFOptions, profile: Profile | None = None) -> None:
        self._processor = loaded.processor
        self._options = options
        self._profile = profile or Profile()
        self._absent = loaded.absent_parts
        self._sampling_rate = loaded.sampling_rate
        self._bounds = self.frame_bounds = picture_bounds(options, loaded.native_pixels)
        self._lengths = Lengths(loaded.processor, options.extra)
        self._marks = media_marks(loaded.processor, loaded.tokenizer, loaded.model.config)
        self._placeholders = placeholder_tokens(loaded.processor, loaded.tokenizer, loaded.model.config)
        self.system_prompt = text_or_file(options.system_prompt)
        self.chat_template = text_or_file(options.chat_template)
        self.is_plain = self.chat_template == NO_TEMPLATE
        """Prompts are texts to be completed: no chat template makes them."""
        has_template = not self.is_plain and self._profile.chat
        self.template = template_of(loaded.processor, self.chat_template) if has_template else ""
        """The chat template in use; empty without one."""
        self.variables = template_variables(self.template)
        """Of the chat template."""
        if options.enable_thinking is not None:
            warn_of_unread(self.template, ["enable_thinking"], f"{self._profile.name}: {options.pretrained}")

    def prepare(self, request: Request) -> Request:
        """The request with a :class:`Prepared` payload.

        Raises:
            MediaError: a picture or video cannot be read.
        """
        import jinja2

        messages = request.build_messages()  # what the task's own functions raise is no matter of the template
        try:
            prepared = self.render(messages, self.variables_of(request.generation))
        except RefusedError as error:
            prepared = Prepared(error=ResponseError("bad_request", str(error)))
        except (jinja2.TemplateError, TypeError, ValueError, LookupError, AttributeError) as error:
            message = f"the prompt cannot be rendered by the chat template: {type(error).__name__}: {error}"
            prepared = Prepared(error=ResponseError("bad_request", message))
        return request.with_payload(prepared, prepared.nbytes)

    def variables_of(self, generation: Mapping[str, Any]) -> dict[str, Any]:
        """Values of the chat template's variables for a request: its own ones over those of the arguments."""
        thinking = self._options.enable_thinking
        own = {} if thinking is None else {"enable_thinking": thinking}
        return {**own, **template_options(generation, self.variables)}

    def read_variables(self, generation: Mapping[str, Any]) -> dict[str, Any]:
        """Those of ``variables_of`` that the chat template reads."""
        return {name: value for name, value in self.variables_of(generation).items() if name in self.variables}

    def render(self, chat: ChatMessages, variables: Mapping[str, Any] | None = None) -> Prepared:
        """Renders a conversation.

        ``variables``: of the chat template; by default those of the arguments.

        Raises:
            RefusedError: a part is not taken. What the template raises passes through.
        """
        media = _Media()
        messages: list[dict[str, Any]] = []
        turns: Sequence[ChatMessage] = chat.messages
        if self._options.interleave_visuals:
            turns = interleave(turns)
        if self._options.reasoning_prompt:
            turns = append_prompt(turns, self._options.reasoning_prompt)
        for message in turns:
            content = [entry for part in message.content for entry in self._part(part, media)]
            messages.append({"role": message.role, "content": content})
        most, name = self._profile.most_pictures, self._profile.name
        if most is not None and len(media.images) > most:
            raise RefusedError(f"{name} takes {most} picture(s) in a request at most, not {len(media.images)}")
        has_system = bool(messages) and messages[0]["role"] == "system"
        system = self.system_prompt or (USUAL_SYSTEM_PROMPT if self._options.add_system_prompt else None)
        if system and (self.system_prompt or not has_system):
            leading = {"role": "system", "content": [{"type": "text", "text": self._neutral(system)}]}
            messages = [leading, *messages[has_system:]]
        prefilled = bool(messages) and messages[-1]["role"] == "assistant"
        if self.is_plain:
            return self.finish(plain_context(messages, self._marks), media.images, media.audios)
        prompted = self._options.add_generation_prompt and not prefilled
        text = self.template_text(messages, prefilled, self.variables_of({}) if variables is None else variables)
        return replace(self.finish(text, media.images, media.audios), has_template=prompted)

    def template_text(self, messages: list[dict[str, Any]], prefilled: bool, variables: Mapping[str, Any]) -> str:
        """The text that the chat template makes; with ``prefilled`` the last message is the reply's beginning."""
        text: str = self._processor.apply_chat_template(
            messages,
            chat_template=self.chat_template,
            tokenize=False,
            add_generation_prompt=self._options.add_generation_prompt and not prefilled,
            continue_final_message=prefilled,
            **variables,
        )
        return text

    def finish(
        self,
        text: str,
        images: Sequence[Image.Image],
        audios: Sequence[npt.NDArray[np.float32]],
        alone: bool = False,
    ) -> Prepared:
        """A prompt with its media and estimated length."""
        seconds = sum(len(sound) for sound in audios) / (self._sampling_rate or 1)
        tokens = self._lengths.tokens(text, [image.size for image in images], seconds)
        alone = alone or (self._profile.sounds_alone and bool(audios))
        return Prepared(text, tuple(images), tuple(audios), tokens, alone)

    def _part(self, part: Any, media: _Media) -> list[dict[str, Any]]:
        """Template entries of one part; its pictures and sounds are appended to ``media``."""
        if isinstance(part, ChatTextContent):
            return [{"type": "text", "text": self._neutral(part.text)}]
        self._check_taken(part.type)
        if isinstance(part, ChatAudioContent):
            media.audios.append(self.sound(part))
            return [{"type": "audio"}]
        if isinstance(part, ChatImageContent):
            from lmms_eval.media import load_rgb

            found = [load_rgb(part.url, bounds=self._bounds, shared=True)]
        else:
            found = video_frames(part, self._options, self.frame_bounds)
        media.images.extend(found)
        return [{"type": "image"} for _ in found]

    def _check_taken(self, kind: str) -> None:
        taken = self._profile.media
        if kind not in taken:
            *most, last = ["text", *(_MEDIA[name] for name in _MEDIA if name in taken)]
            names = f"{', '.join(most)} and {last}" if most else last
            raise RefusedError(f"{self._profile.name} takes {names}, not {_MEDIA[kind]}")
        if any(part in self._absent for part in _NEEDS.get(kind, ())):
            raise RefusedError(f"{self._profile.name} needs torchvision for {_MEDIA[kind]}, and it is not installed")

    def sound(self, part: ChatAudioContent) -> npt.NDArray[np.float32]:
        """Mono samples at the model's rate.

        Raises:
            MediaError: the sound cannot be read.
        """
        from lmms_eval.media import load_audio

        return load_audio(part.url, sampling_rate=self._sampling_rate).samples

    def _neutral(self, text: str) -> str:
        return neutral(text, self._placeholders)


def neutral(text: str, placeholders: Sequence[str]) -> str:
    """``text`` in which no placeholder of the model stands literally: ``<image>`` becomes ``< image>``."""
    for token in placeholders:
        text = text.replace(token, f"{token[0]} {token[1:]}")
    return text


def video_frames(part: ChatVideoContent, options: HFOptions, bounds: Bounds) -> list[Image.Image]:
    """A video as pictures in order of time, each within ``bounds``; a list is taken as the frames themselves.

    Raises:
        MediaError: it cannot be read.
    """
    from lmms_eval.media import Sampling, fit, load_rgb, read_frames, uniform_indices

    value, most = part.url, options.max_num_frames
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        chosen = uniform_indices(len(value), min(most, len(value))) if value else []
        of_each = bounds.of_frames(len(chosen), options.total_pixels)
        return [load_rgb(value[index], bounds=of_each) for index in chosen]
    start, end = part.start_time, part.end_time
    if isinstance(value, Mapping):
        start = value.get("video_start") if start is None else start
        end = value.get("video_end") if end is None else end
    frames = read_frames(value, Sampling(count=most, fps=options.fps, start=start, end=end))
    of_each = bounds.of_frames(len(frames), options.total_pixels)
    return [fit(image, of_each) for image in frames.images()]


def picture_bounds(options: HFOptions, native_pixels: bool = False) -> Bounds:
    """Sizes to which pictures are brought before the processor gets them, which may hold the pixels within bounds."""
    from lmms_eval.media import Bounds

    if native_pixels:
        return Bounds(max_side=options.max_image_size)
    return Bounds(options.max_pixels, options.max_image_size, options.min_pixels)


def placeholder_tokens(processor: Any, tokenizer: Any, config: Any) -> tuple[str, ...]:
    """The strings that stand for a picture, video or sound in a prompt of this model, longest first."""
    found = {str(getattr(holder, name, None) or "") for holder in (processor, tokenizer) for name in _PLACEHOLDER_NAMES}
    for name in _CONFIG_NAMES:
        token_id = getattr(config, name, None)
        if isinstance(token_id, int) and 0 <= token_id < len(tokenizer):
            found.add(str(tokenizer.convert_ids_to_tokens(token_id)))
    marked = {token for token in found if len(token) > 2 and not token.isalnum()}
    return tuple(sorted(marked, key=lambda token: (-len(token), token)))


def media_marks(processor: Any, tokenizer: Any, config: Any) -> dict[str, str]:
    """Find the marks of a picture and of a sound for a prompt that no template has written, by part type.

    A mark is empty where the processor finds the place itself; a model that does not take the part has none.
    """
    # Gemma's processors write a whole sequence in the place of its first token; others multiply the picture's own.
    name = "boi_token" if hasattr(processor, "full_image_sequence") else "image_token"
    image = str(getattr(processor, name, None) or "")
    kinds = ("vision", "image")  # as Qwen, and as GLM and Ernie, name what stands around a picture
    for kind in kinds if not hasattr(config, "low_res_image_start_token_id") else ():  # Molmo's processor writes it
        around = [getattr(config, f"{kind}_{place}_token_id", None) for place in ("start", "end")]
        if image and all(isinstance(token, int) for token in around):
            image = image.join(tokenizer.convert_ids_to_tokens(around))
            break
    found = {"image": image, "audio": str(getattr(processor, "audio_token", None) or "")}
    marks = {kind: mark for kind, mark in found.items() if mark}
    return {**marks, "image": ""} if type(processor).__name__ in _PLACE_PICTURES else marks


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A prepared request with its settings; ``settings`` is ``None`` for a likelihood."""

    request: Request
    prepared: Prepared
    settings: Settings | None

    @property
    def text(self) -> str:
        """All that the model reads: for a likelihood, the continuation too."""
        return self.prepared.text + self.continuation

    @property
    def continuation(self) -> str:
        return self.request.continuation_after(self.prepared.has_template) if self.settings is None else ""

    @property
    def key(self) -> tuple[str, str, str]:
        """Only jobs with equal keys share a batch. A sampled answer is generated alone, so that its seed decides it."""
        alone = self.prepared.alone or (self.settings is not None and self.settings.sampled)
        options = "likelihood" if self.settings is None else self.settings.key
        return (options, self.prepared.kind, self.request.id if alone else "")

    @property
    def tokens(self) -> float:
        """Estimated length of the prompt."""
        return self.prepared.tokens
