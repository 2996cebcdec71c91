"""Types of media and messages as samples and journals hold them."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

DESCRIBED = ConfigDict(use_attribute_docstrings=True)
"""The texts below fields stand in the schema."""
OPEN = ConfigDict(use_attribute_docstrings=True, extra="allow")
"""They do, and further keys may come."""


@with_config(DESCRIBED)
class Medium(TypedDict):
    """A picture, video or sound as it went to the model; keys that do not apply are absent."""

    type: Literal["image", "video", "audio"]
    """Kind of medium."""
    path: NotRequired[str]
    """Of the file that it comes from, absolute."""
    url: NotRequired[str]
    """Address without its query."""
    name: NotRequired[str]
    """That the data give along with its bytes."""
    sha256: NotRequired[str]
    """Of the source's bytes; of mode, size and pixels where it is a picture in memory."""
    bytes: NotRequired[int]
    """Encoded as it was sent, before base64."""
    width: NotRequired[int]
    """In pixels, as sent."""
    height: NotRequired[int]
    """In pixels, as sent."""
    seconds: NotRequired[float]
    """Of a sound."""
    frames: NotRequired[list[int]]
    """Numbers of the frames in the video, from 0."""
    times: NotRequired[list[float]]
    """Of the frames, in seconds from the video's start."""
    fps: NotRequired[float]
    """Frames a second among those that were sent."""
    processed: NotRequired[list[int]]
    """Width and height after a local model's processor has resized it, or of a tile of it."""
    tokens: NotRequired[int]
    """Tokens that represent it in the model's prompt, if the back end reports it."""


@with_config(DESCRIBED)
class Call(TypedDict):
    """A call of a tool, its arguments as the model wrote them."""

    id: str
    """By which its result refers to it."""
    name: str
    """Of the tool."""
    arguments: str
    """JSON, as the model wrote it."""


@with_config(DESCRIBED)
class MessagePart(TypedDict, total=False):
    """A piece of a message."""

    text: str
    """A text."""
    input: tuple[int, int]
    """The text is these characters of the prompt's text."""
    media: int
    """Number of a medium: in samples of ``sent_media``, in journals of ``media``."""
    frame: int
    """This frame of that video alone."""
    type: Literal["image", "video", "audio"]
    """A medium of which nothing more is known; with ``path`` a picture that the model or a tool made."""
    path: str
    """Of the picture's file."""
    sha256: str
    """Of its bytes."""
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
    """Its pieces in order."""
    round: NotRequired[int]
    """From 0."""
    after: NotRequired[int]
    """The model got it after this many of the conversation's first messages alone."""
    continues: NotRequired[Literal[True]]
    """The model got it after all that the round before had sent, and its answer."""
    call: NotRequired[str]
    """Of a tool's result: the id of the call."""


@with_config(DESCRIBED)
class JudgeVerdict(TypedDict):
    """A judge's words on one question about a document."""

    name: str
    """Of the question."""
    text: str | None
    """The reply."""
    accepted: Any
    """Value that the reply was read as."""
    model: str | None
    """That replied."""
    prompt: NotRequired[str]
    """The question as rendered."""
    error: NotRequired[str]
    """Why there is none."""
    replies: NotRequired[list[Any]]
    """All attempts, where there were several."""
    usage: NotRequired[list[int | None]]
    """Input, output and reasoning tokens."""
    details: NotRequired[dict[str, Any]]
    """What the task keeps beside it."""
