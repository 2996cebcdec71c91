"""Rendering messages to a prompt text, pictures and sounds. This runs in preparation threads, without a tokenizer."""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

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
from lmms_eval.errors import ModelError
from lmms_eval.models.argument_names import text_or_file
from lmms_eval.models.chat_template import (
    NO_TEMPLATE,
    plain_context,
    template_of,
    template_options,
    template_variables,
    warn_of_unread,
)
from lmms_eval.models.hf.batching import RECOVERABLE, RefusedError
from lmms_eval.models.hf.options import GENERAL, HFOptions, Profile
from lmms_eval.models.remote.media import Frames, is_listed, read_film, read_pictures, read_sound
from lmms_eval.models.windows import ScoredTokens

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from PIL import Image

    from lmms_eval.api.generation import RequestLimits
    from lmms_eval.api.request import Request
    from lmms_eval.media import Bounds
    from lmms_eval.models.hf.load import Loaded
    from lmms_eval.models.hf.settings import GenerationSettings


_MARK = re.compile(r"<image ?(\d+)>")
_CHARACTERS_PER_TOKEN = 3.5
_PIXELS_PER_TOKEN = 28 * 28
_PICTURE_MIN_TOKENS = 64
_SOUND_TOKENS_PER_SECOND = 25
_STEP = 16
"""Widths and heights are rounded to this many pixels before the processor is called, which takes 0.1 ms, so that
similar sizes share a result."""
_PLACEHOLDER_NAMES = ("image_token", "video_token", "audio_token", "fake_image_token", "boi_token")
_CONFIG_NAMES = ("image_token_id", "image_token_index", "video_token_id", "video_token_index", "audio_token_id")
_PLACE_PICTURES = ("FuyuProcessor", "InstructBlipProcessor")
"""Processors that place their picture before the text, and reject texts with placeholders."""
_NEEDS = {"image": ("image_processor",), "video": ("image_processor",)}
WITH_SOUND = "use_audio_in_video"
"""The argument of families that hear the sound of videos."""
RATES_WITHIN = 1.25
"""The ratio of the frame rates of two films that share a time scale."""
USUAL_SYSTEM_PROMPT = "You are a helpful assistant."
"""The common system message in the training of chat models (``add_system_prompt``)."""
_MEDIA = {"image": "pictures", "video": "video", "audio": "sound"}


def interleave(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Move each picture to the first ``<image N>`` (or ``<imageN>``) with its number in the same message.

    Pictures count from 1. Pictures without a mark and marks without a picture stay in place.
    """
    return [ChatMessage(role=message.role, content=_interleaved(message.content)) for message in messages]


def _interleaved(content: Sequence[ChatContent]) -> list[ChatContent]:
    texts = [part.text for part in content if isinstance(part, ChatTextContent)]
    named = {int(number) for text in texts for number in _MARK.findall(text)}
    images = enumerate((part for part in content if isinstance(part, ChatImageContent)), 1)
    moved = {number: image for number, image in images if number in named}
    left, result = dict(moved), list[ChatContent]()
    for part in content:
        if not isinstance(part, ChatTextContent):
            if not any(part is image for image in moved.values()):
                result.append(part)
            continue
        start, pieces = 0, list[ChatContent]()
        for mark in _MARK.finditer(part.text):
            if (image := left.pop(int(mark[1]), None)) is not None:
                if mark.start() > start:
                    pieces.append(ChatTextContent(text=part.text[start : mark.start()]))
                pieces.append(image)
                start = mark.end()
        if start < len(part.text) or not pieces:
            pieces.append(ChatTextContent(text=part.text[start:]))
        result += pieces
    return result


def append_prompt(messages: Sequence[ChatMessage], prompt: str) -> list[ChatMessage]:
    """Append ``prompt`` to the last text of the user's last message."""
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


class Lengths:
    """Estimates prompt lengths for one model, by its processor's count of tokens if there is one. Thread-safe."""

    def __init__(self, processor: Any, image_options: Mapping[str, Any]) -> None:
        self._count = getattr(processor, "_get_num_multimodal_tokens", None)
        self._image_options = dict(image_options)
        self._of_size = functools.lru_cache(maxsize=4096)(self._ask)

    def tokens(self, text: str, sizes: Iterable[tuple[int, int]], seconds: float = 0.0) -> float:
        """Return the tokens of a prompt with pictures of these widths and heights, and ``seconds`` of sound."""
        rounded = [tuple(-(-side // _STEP) * _STEP for side in size) for size in sizes]
        media = sum(self._of_size(*size) for size in rounded) + seconds * _SOUND_TOKENS_PER_SECOND
        return len(text) / _CHARACTERS_PER_TOKEN + media

    def _ask(self, width: int, height: int) -> float:
        if self._count is not None:
            try:
                found = self._count(image_sizes=[(height, width)], **self._image_options).num_image_tokens
                return float(found[0])
            except RECOVERABLE:  # an interface for vLLM that not every processor implements correctly
                self._count = None
        return max(_PICTURE_MIN_TOKENS, width * height / _PIXELS_PER_TOKEN)


class Film(Struct, frozen=True, eq=False):
    """The frames of a video whose sound the model hears with them."""

    frames: npt.NDArray[np.uint8]
    """``(frames, height, width, 3)``."""
    rate: float
    """Frames per second."""


class Prepared(Struct, frozen=True, eq=False):
    """A rendered prompt, or an ``error`` if the request cannot be rendered."""

    text: str = ""
    images: tuple[Image.Image, ...] = ()
    audios: tuple[npt.NDArray[np.float32], ...] = ()
    """Mono, at the model's sampling rate."""
    tokens: float = 0.0
    """The estimated prompt length, which is only used for comparisons."""
    alone: bool = False
    """Whether it shares no batch."""
    has_template: bool = False
    """Whether it ends with the generation prompt of a chat template."""
    error: ResponseError | None = None
    films: tuple[Film, ...] = ()
    heard: tuple[int | None, ...] = ()
    """For each sound, the number of the film that it belongs to. Empty without films."""

    @property
    def kind(self) -> str:
        """The kinds of its media. Only prompts with the same kinds share a batch."""
        return f"{'image' if self.images else ''}{'audio' if self.audios else ''}{'film' if self.films else ''}"

    @property
    def nbytes(self) -> int:
        """Size in memory."""
        from lmms_eval.media.image import memory_bytes

        pictures = sum(memory_bytes(image) for image in self.images)
        films = sum(int(film.frames.nbytes) for film in self.films)
        return len(self.text) + pictures + films + sum(int(sound.nbytes) for sound in self.audios)


class InputBuilder:
    """Renders requests for one model. Thread-safe: nothing but the last rendering changes after construction."""

    def __init__(self, loaded: Loaded, options: HFOptions, profile: Profile = GENERAL) -> None:
        self._processor = loaded.processor
        self._options = options
        self._profile = profile
        self._absent = loaded.absent_parts
        self._sampling_rate = loaded.sampling_rate
        self._bounds = self.frame_bounds = picture_bounds(options, loaded.native_pixels)
        self._frames = frames_of(options)
        self._film_bounds = picture_bounds(options)
        self._with_sound = bool(options.extra.get(WITH_SOUND))
        if self._with_sound and getattr(loaded.processor, "video_processor", None) is None:
            raise ModelError(f"{profile.name}: {WITH_SOUND}=true needs torchvision: pip install torchvision")
        self._lengths = Lengths(loaded.processor, options.extra)
        self._marks = media_marks(loaded.processor, loaded.tokenizer, loaded.model.config)
        self._placeholders = placeholder_tokens(loaded.processor, loaded.tokenizer, loaded.model.config)
        self.system_prompt = text_or_file(options.system_prompt)
        self.chat_template = text_or_file(options.chat_template)
        self.is_plain = self.chat_template == NO_TEMPLATE
        """Whether prompts are texts to be completed, without a chat template."""
        has_template = not self.is_plain and self._profile.chat
        self.template = template_of(loaded.processor, self.chat_template) if has_template else ""
        """The chat template in use, or an empty text."""
        self._last: tuple[tuple[Any, ...], Prepared] | None = None
        """The last messages without media, and their rendering: the choices of a document have the same ones."""
        self.variables = template_variables(self.template)
        """The variables of the chat template."""
        if options.enable_thinking is not None:
            warn_of_unread(self.template, ["enable_thinking"], f"{self._profile.name}: {options.pretrained}")

    def prepare(self, request: Request) -> Request:
        """Render the request to a :class:`Prepared` payload. Raises ``MediaError`` if a medium cannot be read."""
        import jinja2

        if request.kind == "loglikelihood_rolling":
            prepared = Prepared(request.continuation or "")
            return request.with_payload(prepared, prepared.nbytes)
        messages = request.build_messages()  # not in the block: exceptions of the task do not concern the template
        try:
            prepared = self.limited(request.media).render(messages, self.variables_of(request.generation))
        except RefusedError as error:
            prepared = Prepared(error=ResponseError("bad_request", str(error)))
        except (jinja2.TemplateError, TypeError, ValueError, LookupError, AttributeError) as error:
            message = f"the prompt cannot be rendered by the chat template: {type(error).__name__}: {error}"
            prepared = Prepared(error=ResponseError("bad_request", message))
        return request.with_payload(prepared, prepared.nbytes)

    def limited(self, limits: RequestLimits | None) -> InputBuilder:
        """Return a builder with the media limits of a request in place of its own."""
        if limits is None:
            return self
        made = copy.copy(self)
        made._bounds, made.frame_bounds = self._bounds.limited(limits), self.frame_bounds.limited(limits)
        made._frames, made._film_bounds = self._frames.limited(limits), self._film_bounds.limited(limits)
        return made

    def variables_of(self, generation: Mapping[str, Any]) -> dict[str, Any]:
        """Return the chat template's variables for a request. Those of the request override those of the arguments."""
        thinking = self._options.enable_thinking
        own = {} if thinking is None else {"enable_thinking": thinking}
        return {**own, **template_options(generation, self.variables)}

    def read_variables(self, generation: Mapping[str, Any]) -> dict[str, Any]:
        """Return the variables of ``variables_of`` that the chat template reads."""
        return {name: value for name, value in self.variables_of(generation).items() if name in self.variables}

    def render(self, chat: ChatMessages, variables: Mapping[str, Any] | None = None) -> Prepared:
        """Render a conversation.

        ``variables`` are those of the chat template, by default from the arguments. Raises ``RefusedError`` if a part
        is not supported. Exceptions of the template pass through.
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
        media.check(name)
        has_system = bool(messages) and messages[0]["role"] == "system"
        system = self.system_prompt or (USUAL_SYSTEM_PROMPT if self._options.add_system_prompt else None)
        if system and (self.system_prompt or not has_system):
            leading = {"role": "system", "content": [{"type": "text", "text": self._neutral(system)}]}
            messages = [leading, *messages[has_system:]]
        prefilled = bool(messages) and messages[-1]["role"] == "assistant"
        given = self.variables_of({}) if variables is None else variables
        key = (messages, prefilled, self.is_plain or chat.is_plain, given)
        last = self._last  # another thread may replace it
        if media.is_empty and last is not None and last[0] == key:
            return last[1]
        prepared = self._rendered(messages, media, prefilled, None if key[2] else given)
        if media.is_empty:
            self._last = key, prepared
        return prepared

    def _rendered(
        self, messages: list[dict[str, Any]], media: _Media, prefilled: bool, variables: Mapping[str, Any] | None
    ) -> Prepared:
        """Render messages with the chat template; without it if ``variables`` is ``None``."""
        if variables is None:
            return self._finish(plain_context(messages, self._marks), media)
        prompted = self._options.add_generation_prompt and not prefilled
        return replace(self._finish(self.template_text(messages, prefilled, variables), media), has_template=prompted)

    def template_text(self, messages: list[dict[str, Any]], prefilled: bool, variables: Mapping[str, Any]) -> str:
        """Render the text with the chat template. With ``prefilled``, the last message begins the reply."""
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
        self, text: str, images: Sequence[Image.Image], audios: Sequence[npt.NDArray[np.float32]], alone: bool = False
    ) -> Prepared:
        """Build a prompt with its media and estimated length."""
        seconds = sum(len(sound) for sound in audios) / (self._sampling_rate or 1)
        tokens = self._lengths.tokens(text, [image.size for image in images], seconds)
        alone = alone or (self._profile.sounds_alone and bool(audios))
        return Prepared(text, tuple(images), tuple(audios), tokens, alone)

    def _finish(self, text: str, media: _Media) -> Prepared:
        prepared = self.finish(text, media.images, media.audios, alone=bool(media.films))
        if not media.films:
            return prepared
        sizes = [film.frames.shape[2:0:-1] for film in media.films for _ in range(0, len(film.frames), 2)]
        tokens = prepared.tokens + self._lengths.tokens("", sizes)
        return replace(prepared, films=tuple(media.films), heard=tuple(media.heard), tokens=tokens)

    def _part(self, part: Any, media: _Media) -> list[dict[str, Any]]:
        """Return the template entries of one part, and add its pictures and sounds."""
        if isinstance(part, ChatTextContent):
            return [{"type": "text", "text": self._neutral(part.text)}]
        self._check_taken(part.type)
        if isinstance(part, ChatAudioContent):
            media.add_sound(self.sound(part), None)
            return [{"type": "audio"}]
        if isinstance(part, ChatImageContent):
            from lmms_eval.media import load_rgb

            found = [load_rgb(part.url, bounds=self._bounds, shared=True)]
        elif self._with_sound and (sound := read_sound(part, self._sampling_rate)) is not None:
            media.add_film(_film(part, self._frames, self._film_bounds), sound.samples)
            return [{"type": "video"}]
        else:
            found = video_frames(part, self._frames, self.frame_bounds)
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
        """Read a sound as mono samples at the model's rate. Raises ``MediaError`` if the sound cannot be read."""
        from lmms_eval.media import load_audio

        return load_audio(part.url, sampling_rate=self._sampling_rate).samples

    def _neutral(self, text: str) -> str:
        return neutral(text, self._placeholders)


class _Media:
    """The media of a conversation, in order."""

    def __init__(self) -> None:
        self.images: list[Image.Image] = []
        self.audios: list[npt.NDArray[np.float32]] = []
        self.films: list[Film] = []
        self.heard: list[int | None] = []

    @property
    def is_empty(self) -> bool:
        return not (self.images or self.audios or self.films)

    def add_sound(self, samples: npt.NDArray[np.float32], film: int | None) -> None:
        self.audios.append(samples)
        self.heard.append(film)

    def add_film(self, film: Film, samples: npt.NDArray[np.float32]) -> None:
        self.add_sound(samples, len(self.films))
        self.films.append(film)

    def check(self, name: str) -> None:
        """Raise ``RefusedError`` for films whose rates are too different for the one time scale of a processor."""
        rates = sorted(film.rate for film in self.films)
        if rates and rates[-1] > rates[0] * RATES_WITHIN:
            shown = " and ".join(f"{rate:.3g}" for rate in (rates[0], rates[-1]))
            raise RefusedError(
                f"{name} hears videos of about one frame rate in a request, not of {shown} frames per second: give fps"
            )


def _film(part: ChatVideoContent, frames: Frames, bounds: Bounds) -> Film:
    """Read a video. Raises ``MediaError`` if it cannot be read."""
    array, facts = read_film(part, frames, bounds)
    indices = facts["frames_indices"]
    length = (indices[-1] - indices[0]) / facts["fps"]
    array = array if array.flags.writeable else array.copy()  # torch takes no other
    return Film(array, (len(indices) - 1) / length if length > 0 else 1.0)


def neutral(text: str, placeholders: Sequence[str]) -> str:
    """Break up the model's placeholders in a text: ``<image>`` becomes ``< image>``."""
    for token in placeholders:
        text = text.replace(token, f"{token[0]} {token[1:]}")
    return text


def frames_of(options: HFOptions) -> Frames:
    """Return the frames to take of videos."""
    least, total = options.min_frames or 1, options.total_pixels
    frames = Frames(options.max_num_frames, options.fps, total_pixels=total, least=least)
    return frames.with_rule(options.frame_rule, picture_bounds(options))


def video_frames(part: ChatVideoContent, frames: Frames, bounds: Bounds) -> list[Image.Image]:
    """Read a video as pictures in order of time, each within ``bounds``. A list contains the frames themselves.

    Raises:
        MediaError: the video cannot be read.
    """
    if is_listed(part.url) and not part.url:
        return []
    return read_pictures(part, frames, bounds)


def picture_bounds(options: HFOptions, native_pixels: bool = False) -> Bounds:
    """Return the size bounds of pictures before the processor, which may apply pixel limits itself."""
    from lmms_eval.media import Bounds

    if native_pixels:
        return Bounds(max_side=options.max_image_size)
    return Bounds(options.max_pixels, options.max_image_size, options.min_pixels)


def placeholder_tokens(processor: Any, tokenizer: Any, config: Any) -> tuple[str, ...]:
    """Return the placeholders of media in prompts of this model, longest first."""
    found = {str(getattr(holder, name, None) or "") for holder in (processor, tokenizer) for name in _PLACEHOLDER_NAMES}
    for name in _CONFIG_NAMES:
        token_id = getattr(config, name, None)
        if isinstance(token_id, int) and 0 <= token_id < len(tokenizer):
            found.add(str(tokenizer.convert_ids_to_tokens(token_id)))
    marked = {token for token in found if len(token) > 2 and not token.isalnum()}
    return tuple(sorted(marked, key=lambda token: (-len(token), token)))


def media_marks(processor: Any, tokenizer: Any, config: Any) -> dict[str, str]:
    """Return the placeholders of pictures and sounds in prompts without a template, by part type.

    A placeholder is empty if the processor finds the place itself. Unsupported types are missing.
    """
    # Gemma's processors replace the first token of a sequence by the sequence; others repeat the picture's token.
    name = "boi_token" if hasattr(processor, "full_image_sequence") else "image_token"
    image = str(getattr(processor, name, None) or "")
    kinds = ("vision", "image")  # the names of the enclosing tokens in Qwen, and in GLM and Ernie
    for kind in kinds if not hasattr(config, "low_res_image_start_token_id") else ():  # Molmo's processor adds it
        around = [getattr(config, f"{kind}_{place}_token_id", None) for place in ("start", "end")]
        if image and all(isinstance(token, int) for token in around):
            image = image.join(tokenizer.convert_ids_to_tokens(around))
            break
    found = {"image": image, "audio": str(getattr(processor, "audio_token", None) or "")}
    marks = {kind: mark for kind, mark in found.items() if mark}
    return {**marks, "image": ""} if type(processor).__name__ in _PLACE_PICTURES else marks


class PreparedRequest(Struct, frozen=True, eq=False):
    """A prepared request with its settings, which are ``None`` for a likelihood."""

    request: Request
    prepared: Prepared
    settings: GenerationSettings | None
    window: ScoredTokens | None = None
    """A part of a text whose whole likelihood is requested."""

    @property
    def text(self) -> str:
        """The whole input text, which for a likelihood includes the continuation."""
        return "".join(self.parts)

    @property
    def parts(self) -> tuple[str, str]:
        """The prompt, and the continuation whose likelihood is requested."""
        if self.settings is not None:
            return self.prepared.text, ""
        return self.request.prompt_and_continuation(self.prepared.text, self.prepared.has_template)

    @property
    def key(self) -> tuple[str, str, str]:
        """Only jobs with equal keys share a batch. A sampled answer is generated alone, from its own seed."""
        alone = self.prepared.alone or (self.settings is not None and self.settings.sampled)
        if self.window is not None:
            return ("window", "", "")
        options = "likelihood" if self.settings is None else self.settings.key
        return (options, self.prepared.kind, self.request.id if alone else "")

    @property
    def tokens(self) -> float:
        """The estimated length of the prompt with the continuation, or that of the window."""
        if self.window is not None:
            return sum(map(len, self.window)) - 1
        return self.prepared.tokens + len(self.request.continuation or "") / _CHARACTERS_PER_TOKEN

    @property
    def near(self) -> float:
        """The estimated length that decides which jobs share a batch: that of the prompt, so its continuations meet."""
        return self.tokens if self.window is not None else self.prepared.tokens
