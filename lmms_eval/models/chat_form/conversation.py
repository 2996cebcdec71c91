"""From a request's messages to turns with their media in memory, the same for every form of ``chat``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmms_eval.api.messages import ChatAudioContent, ChatContent, ChatImageContent, ChatMessage, ChatTextContent
from lmms_eval.models.hf.arrange import append_prompt, interleave
from lmms_eval.models.hf.batching import RefusedError
from lmms_eval.models.hf.inputs import neutral, picture_bounds, video_frames
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
