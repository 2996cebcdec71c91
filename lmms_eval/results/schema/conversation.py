"""Types of media and messages as samples and journals hold them."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

DESCRIBED = ConfigDict(use_attribute_docstrings=True)
"""The docstrings of fields are part of the schema."""
OPEN = ConfigDict(use_attribute_docstrings=True, extra="allow")
"""The same, and further keys are allowed."""


@with_config(DESCRIBED)
class Medium(TypedDict):
    """A picture, video or sound as it went to the model; keys that do not apply are absent."""

    type: Literal["image", "video", "audio"]
    """Kind of medium."""
    path: NotRequired[str]
    """Absolute path of its file."""
    url: NotRequired[str]
    """Address, without its query."""
    name: NotRequired[str]
    """Name that the data give with its bytes."""
    sha256: NotRequired[str]
    """Hash of the source's bytes; for a picture in memory, of its mode, size and pixels."""
    bytes: NotRequired[int]
    """Size as encoded for sending, before base64."""
    width: NotRequired[int]
    """Width in pixels, as sent."""
    height: NotRequired[int]
    """Height in pixels, as sent."""
    seconds: NotRequired[float]
    """Duration of a sound."""
    frames: NotRequired[list[int]]
    """Indices of the frames in the video, from 0."""
    times: NotRequired[list[float]]
    """Times of the frames, in seconds from the video's start."""
    fps: NotRequired[float]
    """Frames per second of the frames that were sent."""
    processed: NotRequired[list[int]]
    """Width and height after resizing by a local model's processor, or of one tile."""
    tokens: NotRequired[int]
    """Tokens of the medium in the model's prompt, if the back end reports them."""


@with_config(DESCRIBED)
class Call(TypedDict):
    """A tool call by the model."""

    id: str
    """Id that the result uses for the call."""
    name: str
    """Name of the tool."""
    arguments: str
    """Arguments as JSON, as the model wrote them."""


@with_config(DESCRIBED)
class MessagePart(TypedDict, total=False):
    """A piece of a message."""

    text: str
    """A text."""
    input: tuple[int, int]
    """Begin and end of the text within the prompt's text."""
    media: int
    """Index of a medium: in samples, in ``sent_media``; in journals, in ``media``."""
    frame: int
    """Index of a single frame of that video."""
    type: Literal["image", "video", "audio"]
    """A medium without further facts; with ``path``, a picture that the model or a tool made."""
    path: str
    """Path of the picture's file."""
    sha256: str
    """Hash of its bytes."""
    picture: tuple[str, str]
    """In journals: hash and media type of a picture that the model or a tool made."""
    call: Call
    """A call of a tool."""


@with_config(DESCRIBED)
class Message(TypedDict):
    """A message of a conversation, as it went to the model or came from it."""

    role: str
    """``system``, ``user``, ``assistant`` or ``tool``."""
    content: list[MessagePart]
    """Its pieces, in order."""
    round: NotRequired[int]
    """Number of the round, from 0."""
    after: NotRequired[int]
    """The model received it after only this many of the conversation's first messages."""
    continues: NotRequired[Literal[True]]
    """The model received it after all messages of the previous round and its answer."""
    call: NotRequired[str]
    """For a tool's result: the id of the call."""


@with_config(DESCRIBED)
class JudgeVerdict(TypedDict):
    """A judge's reply to one question about a document."""

    name: str
    """Name of the question."""
    text: str | None
    """The reply."""
    accepted: Any
    """Value read from the reply."""
    model: str | None
    """Model that replied."""
    prompt: NotRequired[str]
    """The question as rendered."""
    error: NotRequired[str]
    """Why there is no reply."""
    replies: NotRequired[list[Any]]
    """All replies, if there were several attempts."""
    usage: NotRequired[list[int | None]]
    """Input, output and reasoning tokens."""
    details: NotRequired[dict[str, Any]]
    """Further facts that the task records."""
