"""The interface of a form: how the ``chat`` of a family of checkpoints is called."""

from __future__ import annotations

import abc
import copy
import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from lmms_eval.api.messages import ChatAudioContent, ChatContent, ChatImageContent, ChatMessage, ChatTextContent
from lmms_eval.errors import ModelError
from lmms_eval.models.argument_names import text_or_file
from lmms_eval.models.hf.batching import RefusedError, is_lost_device, is_out_of_memory
from lmms_eval.models.hf.inputs import (
    append_prompt,
    frames_of,
    interleave,
    neutral,
    picture_bounds,
    video_frames,
)
from lmms_eval.models.hf.options import HFOptions

if TYPE_CHECKING:
    from lmms_eval.api.generation import RequestLimits
    from lmms_eval.api.messages import ChatMessages


SAMPLING_RATE = 16_000
"""Samples per second of sounds."""


@dataclass(frozen=True, slots=True, eq=False)
class ChatMedium:
    """A picture, a video as frames in order of time, or a sound as mono samples at ``SAMPLING_RATE``."""

    kind: Literal["image", "video", "audio"]
    items: tuple[Any, ...]
    """``PIL.Image.Image``, or one array of float32 for a sound."""


Piece = str | ChatMedium
ChatTurn = tuple[str, tuple[Piece, ...]]
"""A role, and the pieces of its consecutive messages."""


class ChatPrompt(abc.ABC):
    """A conversation in the form for ``chat``."""

    @property
    @abc.abstractmethod
    def nbytes(self) -> int:
        """Size in memory."""


@dataclass(frozen=True, slots=True, eq=False)
class ChatConversation(ChatPrompt):
    """Alternating turns of user and assistant. The user has the first and the last; the assistant has only texts."""

    system: str
    """Empty if there is no system message."""
    turns: tuple[ChatTurn, ...]
    limits: RequestLimits | None = None
    """Limits on the media in place of the arguments'."""

    @property
    def nbytes(self) -> int:
        """Size in memory."""
        from lmms_eval.media.image import memory_bytes

        total = 0
        for piece in (piece for _, pieces in self.turns for piece in pieces):
            if isinstance(piece, str):
                total += len(piece)
            elif piece.kind == "audio":
                total += sum(int(samples.nbytes) for samples in piece.items)
            else:
                total += sum(memory_bytes(image) for image in piece.items)
        return total


class ConversationReader:
    """Converts messages to conversations for one model. Thread-safe."""

    def __init__(self, name: str, options: HFOptions, form: ChatForm) -> None:
        self._name, self._options = name, options
        self._media, self._marks = form.media, form.marks
        self._bounds, self._frames = picture_bounds(options), frames_of(options)
        self._limits: RequestLimits | None = None
        self.system_prompt = text_or_file(options.system_prompt)

    def limited(self, limits: RequestLimits | None) -> ConversationReader:
        """Return a reader with the media limits of a request in place of its own."""
        if limits is None:
            return self
        made = copy.copy(self)
        made._bounds, made._frames = self._bounds.limited(limits), self._frames.limited(limits)
        made._limits = limits
        return made

    def read(self, chat: ChatMessages) -> ChatConversation:
        """Convert messages to a conversation.

        Raises:
            RefusedError: a part is not supported, or ``chat`` does not support the order of roles.
            MediaError: a picture, video or sound cannot be read.
        """
        messages: Sequence[ChatMessage] = chat.messages
        system = ""
        if messages and messages[0].role == "system":
            system = "".join(map(self._text, messages[0].content))
            messages = messages[1:]
        if self._options.interleave_visuals:
            messages = interleave(messages)
        if self._options.reasoning_prompt:
            messages = append_prompt(messages, self._options.reasoning_prompt)
        turns: list[ChatTurn] = []
        for message in messages:
            read = self._piece if message.role == "user" else self._text
            pieces: tuple[Piece, ...] = tuple(read(part) for part in message.content)
            if turns and turns[-1][0] == message.role:
                turns[-1] = (message.role, (*turns[-1][1], "\n", *pieces))
            else:
                turns.append((message.role, pieces))
        roles = [role for role, _ in turns]
        if roles != ["user", "assistant"] * (len(roles) // 2) + ["user"]:
            raise RefusedError(
                f"{self._name}: chat takes messages of user and assistant in alternation, the user's first and last, "
                f"not {', '.join(roles) or 'none'}"
            )
        return ChatConversation(self.system_prompt or system, tuple(turns), self._limits)

    def _text(self, part: ChatContent) -> str:
        if not isinstance(part, ChatTextContent):
            raise RefusedError(f"{self._name}: only the user's messages may show media")
        return neutral(part.text, self._marks)

    def _piece(self, part: ChatContent) -> Piece:
        if isinstance(part, ChatTextContent):
            return neutral(part.text, self._marks)
        if part.type not in self._media:
            taken = ", ".join(["text", *sorted(self._media)])
            raise RefusedError(f"{self._name} takes {taken}, not {part.type}")
        if isinstance(part, ChatAudioContent):
            from lmms_eval.media import load_audio

            return ChatMedium("audio", (load_audio(part.url, sampling_rate=SAMPLING_RATE).samples,))
        if isinstance(part, ChatImageContent):
            from lmms_eval.media import load_rgb

            return ChatMedium("image", (load_rgb(part.url, bounds=self._bounds, shared=True),))
        return ChatMedium("video", tuple(video_frames(part, self._frames, self._bounds)))


def media_of(conversation: ChatConversation, kind: str) -> list[ChatMedium]:
    """Return the media of one kind, in the order of the conversation."""
    found = (piece for _, pieces in conversation.turns for piece in pieces)
    return [piece for piece in found if isinstance(piece, ChatMedium) and piece.kind == kind]


class ChatForm(abc.ABC):
    """Renders prompts and calls ``chat``. Rendering is thread-safe.

    Args:
        model: the loaded model, with its own ``chat``.
        tokenizer: its tokenizer.
        config: the content of ``config.json``.
        extra: additional arguments of the form.

    Raises:
        ModelError: the checkpoint does not support an argument.
    """

    name: ClassVar[str]
    parameters: ClassVar[tuple[str, ...]]
    """Parameters that identify the family's ``chat``."""
    marks: ClassVar[tuple[str, ...]]
    """Placeholders of media in its prompts. A blank is inserted into them if they occur in a task's text."""

    limits: ClassVar[frozenset[str]] = frozenset()
    """Names of further limits of a request's media that it applies."""

    def __init__(self, model: Any, tokenizer: Any, config: Mapping[str, Any], extra: Mapping[str, Any]) -> None:
        self.model, self.tokenizer, self.config, self.extra = model, tokenizer, config, extra
        self.chat_parameters = chat_parameters(model)

    @property
    @abc.abstractmethod
    def media(self) -> frozenset[str]:
        """The media that the checkpoint supports in addition to text: ``image``, ``video``, ``audio``."""

    @abc.abstractmethod
    def render(self, conversation: ChatConversation) -> Any:
        """Render a conversation. Raises ``RefusedError`` if the form does not support the conversation."""

    @abc.abstractmethod
    def ask(self, prompts: Sequence[Any], arguments: Mapping[str, Any]) -> list[Any]:
        """Return the answers to prompts. Several prompts must have the same ``group``.

        Args:
            prompts: results of ``render``.
            arguments: arguments of transformers' ``generate``, including ``do_sample`` and ``max_new_tokens``.

        Raises:
            RefusedError: ``chat`` failed, or does not support an option.
        """

    def takes_option(self, name: str) -> bool:  # noqa: ARG002 - for forms that take all
        """Return whether ``chat`` supports an option of ``generate``."""
        return True

    def group(self, prompt: Any) -> Hashable | None:  # noqa: ARG002 - for forms without batches
        """Return the key of prompts that may share a batch; ``None`` if the prompt needs its own call."""
        return None


def chat_parameters(model: Any) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of the checkpoint's ``chat``; empty if they cannot be inspected."""
    try:
        return inspect.signature(model.chat).parameters
    except (TypeError, ValueError):
        return {}


def check_form(form: type[ChatForm], others: Sequence[type[ChatForm]], model: Any, pretrained: str) -> None:
    """Raise ``ModelError`` if the ``chat`` of a checkpoint has another form. The message names the form if known."""
    found = chat_parameters(model)
    if set(form.parameters) <= set(found):
        return
    right = next((other.name for other in others if set(other.parameters) <= set(found)), "")
    remedy = f"use --model {right}" if right else "a class of your own can ask it as a plugin"
    raise ModelError(
        f"{form.name}: chat of {type(model).__name__} ({pretrained}) takes {', '.join(found) or 'nothing'}, not "
        f"{', '.join(form.parameters)}: {remedy}"
    )


def call(chat: Callable[..., Any], *values: Any, **named: Any) -> Any:
    """Call the checkpoint's own code. Raises ``RefusedError``, but not if memory runs out or the device is lost."""
    import torch

    try:
        with torch.inference_mode():
            return chat(*values, **named)
    except Exception as error:  # the checkpoint's own code may raise anything
        if is_out_of_memory(error) or is_lost_device(error):
            raise
        raise RefusedError(f"chat raised {type(error).__name__}: {error}", "internal") from error
