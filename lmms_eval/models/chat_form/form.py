"""The contract of a form: the way in which the checkpoints of one family are asked through their ``chat``."""

from __future__ import annotations

import abc
import inspect
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from lmms_eval.api.messages import ChatAudioContent, ChatContent, ChatImageContent, ChatMessage, ChatTextContent
from lmms_eval.errors import ModelError
from lmms_eval.models.hf.batching import RefusedError, is_lost_device, is_out_of_memory
from lmms_eval.models.hf.inputs import append_prompt, interleave, neutral, picture_bounds, video_frames
from lmms_eval.models.hf.options import HFOptions, text_or_file

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from PIL import Image

    from lmms_eval.api.messages import ChatMessages


SAMPLING_RATE = 16_000
"""Samples per second of sounds."""


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    image: Image.Image


@dataclass(frozen=True, slots=True, eq=False)
class Film:
    frames: tuple[Image.Image, ...]
    """Pictures in order of time."""


@dataclass(frozen=True, slots=True, eq=False)
class Sound:
    samples: npt.NDArray[np.float32]
    """Mono, ``SAMPLING_RATE`` a second."""


Piece = str | Picture | Film | Sound


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """One side's part of the conversation up to the answer of the other."""

    role: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Conversation:
    """Turns of user and assistant in alternation, the user's first and last; those of the assistant are texts."""

    system: str
    """Empty where there is no system message."""
    turns: tuple[Turn, ...]

    @property
    def nbytes(self) -> int:
        """Size in memory."""
        from lmms_eval.media.image import memory_bytes

        total = 0
        for piece in (piece for turn in self.turns for piece in turn.pieces):
            if isinstance(piece, str):
                total += len(piece)
            elif isinstance(piece, Sound):
                total += int(piece.samples.nbytes)
            else:
                images = piece.frames if isinstance(piece, Film) else (piece.image,)
                total += sum(memory_bytes(image) for image in images)
        return total


@dataclass(frozen=True, slots=True)
class Senses:
    """The kinds of media that one model takes beside text."""

    media: frozenset[str]
    """``image``, ``video``, ``audio``."""
    marks: tuple[str, ...]
    """Texts that stand for media in its prompts: a blank is put into those that a task's own text holds."""


class ConversationReader:
    """Reads messages for one model. Thread-safe."""

    def __init__(self, name: str, options: HFOptions, senses: Senses) -> None:
        self._name, self._options, self._senses = name, options, senses
        self._bounds = picture_bounds(options)
        self.system_prompt = text_or_file(options.system_prompt)

    def read(self, chat: ChatMessages) -> Conversation:
        """Read a conversation.

        Raises:
            RefusedError: a part is not taken, or the roles are in an order that ``chat`` cannot express.
            MediaError: a picture, video or sound cannot be read.
        """
        messages: Sequence[ChatMessage] = chat.messages
        system = ""
        if messages and messages[0].role == "system":
            system = "".join(self._texts(messages[0]))
            messages = messages[1:]
        if self._options.interleave_visuals:
            messages = interleave(messages)
        if self._options.reasoning_prompt:
            messages = append_prompt(messages, self._options.reasoning_prompt)
        turns: list[Turn] = []
        for message in messages:
            read = self._pieces if message.role == "user" else self._texts
            pieces: tuple[Piece, ...] = tuple(read(message))
            if turns and turns[-1].role == message.role:
                turns[-1] = Turn(message.role, (*turns[-1].pieces, "\n", *pieces))
            else:
                turns.append(Turn(message.role, pieces))
        roles = [turn.role for turn in turns]
        if roles != ["user", "assistant"] * (len(roles) // 2) + ["user"]:
            raise RefusedError(
                f"{self._name}: chat takes messages of user and assistant in alternation, the user's first and last, "
                f"not {', '.join(roles) or 'none'}"
            )
        return Conversation(self.system_prompt or system, tuple(turns))

    def _texts(self, message: ChatMessage) -> Iterator[str]:
        for part in message.content:
            if not isinstance(part, ChatTextContent):
                raise RefusedError(f"{self._name}: only the user's messages may show media")
            yield neutral(part.text, self._senses.marks)

    def _pieces(self, message: ChatMessage) -> Iterator[Piece]:
        for part in message.content:
            yield self._piece(part)

    def _piece(self, part: ChatContent) -> Piece:
        if isinstance(part, ChatTextContent):
            return neutral(part.text, self._senses.marks)
        if part.type not in self._senses.media:
            taken = ", ".join(["text", *sorted(self._senses.media)])
            raise RefusedError(f"{self._name} takes {taken}, not {part.type}")
        if isinstance(part, ChatAudioContent):
            from lmms_eval.media import load_audio

            return Sound(load_audio(part.url, sampling_rate=SAMPLING_RATE).samples)
        if isinstance(part, ChatImageContent):
            from lmms_eval.media import load_rgb

            return Picture(load_rgb(part.url, bounds=self._bounds, shared=True))
        return Film(tuple(video_frames(part, self._options, self._bounds)))


def text_of(turn: Turn) -> str:
    """Join the texts of a turn."""
    return "".join(piece for piece in turn.pieces if isinstance(piece, str))


def pieces_of(conversation: Conversation, kind: type[Any]) -> list[Any]:
    """List the pieces of one kind in the order of the conversation."""
    return [piece for turn in conversation.turns for piece in turn.pieces if isinstance(piece, kind)]


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A model with a ``chat`` of its own."""

    model: Any
    tokenizer: Any
    config: Mapping[str, Any] = field(default_factory=dict)
    """Content of ``config.json``."""


class Prompt(abc.ABC):
    """A conversation as one form's ``chat`` takes it."""

    @property
    @abc.abstractmethod
    def nbytes(self) -> int:
        """Size in memory."""


class ChatForm(abc.ABC):
    """Renders prompts and calls ``chat``. Rendering is thread-safe.

    Args:
        checkpoint: the model with its tokenizer.
        extra: arguments of the form alone.

    Raises:
        ModelError: an argument does not fit the checkpoint.
    """

    name: ClassVar[str]
    parameters: ClassVar[tuple[str, ...]]
    """Parameters by which the family's ``chat`` is known."""

    def __init__(self, checkpoint: Checkpoint, extra: Mapping[str, Any]) -> None:
        self.model, self.tokenizer, self.config = checkpoint.model, checkpoint.tokenizer, checkpoint.config
        self.extra = extra
        self.chat_parameters = chat_parameters(checkpoint.model)

    @property
    @abc.abstractmethod
    def senses(self) -> Senses:
        """The media that the checkpoint takes beside text."""

    @abc.abstractmethod
    def render(self, conversation: Conversation) -> Any:
        """Render a conversation as a :class:`Prompt`.

        Raises:
            RefusedError: this form cannot express it.
        """

    @abc.abstractmethod
    def ask(self, prompts: Sequence[Any], arguments: Mapping[str, Any]) -> list[Any]:
        """Ask for the answer to each prompt; several at a time only of one ``group``.

        Args:
            prompts: of ``render``.
            arguments: of transformers' ``generate``, ``do_sample`` and ``max_new_tokens`` among them.

        Raises:
            RefusedError: ``chat`` failed, or does not take an option.
        """

    def takes_option(self, name: str) -> bool:  # noqa: ARG002 - for forms that take all
        """Return whether ``chat`` takes an option of ``generate``."""
        return True

    def group(self, prompt: Any) -> Hashable | None:  # noqa: ARG002 - for forms that ask one by one
        """Key of the prompts that may be asked together; ``None`` where this one is asked alone."""
        return None


def chat_parameters(model: Any) -> Mapping[str, inspect.Parameter]:
    """Parameters of the checkpoint's ``chat``; none where it cannot be looked at."""
    try:
        return inspect.signature(model.chat).parameters
    except (TypeError, ValueError):
        return {}


def check_form(form: type[ChatForm], others: Sequence[type[ChatForm]], model: Any, pretrained: str) -> None:
    """Raises ``ModelError`` for a checkpoint whose ``chat`` has another form; says which, where that is known."""
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
    """Call the checkpoint's own code.

    Raises:
        RefusedError: it raised something. Running out of memory and the loss of the device pass through.
    """
    import torch

    try:
        with torch.inference_mode():
            return chat(*values, **named)
    except Exception as error:  # the checkpoint's own code may raise anything
        if is_out_of_memory(error) or is_lost_device(error):
            raise
        raise RefusedError(f"chat raised {type(error).__name__}: {error}", "internal") from error
