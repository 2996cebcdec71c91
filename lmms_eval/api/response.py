"""Responses of a model: texts, pictures, log probabilities and errors, with the tokens and media that they took."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import index
from typing import Any, Literal
from unicodedata import category

from msgspec import Struct, convert, structs

from lmms_eval.api.records import Call, ErrorKind, Medium, Message

MOST_TOKENS = 2**53
"""Larger counts are treated as unknown: JSON of most servers cannot hold them as whole numbers."""


class Usage(Struct, frozen=True):
    """Token counts of one response; ``None`` if the back end does not report them.

    Some servers report fractions, negative or absurd numbers: any count that is not a whole number from 0 is unknown.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("input_tokens", "output_tokens", "reasoning_tokens"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or not 0 <= value < MOST_TOKENS):
                structs.force_setattr(self, name, _token_count(value))

    @property
    def is_known(self) -> bool:
        """Input and output tokens are both known."""
        return self.input_tokens is not None and self.output_tokens is not None

    def to_dict(self) -> dict[str, int | None]:
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "reasoning_tokens": self.reasoning_tokens,
        }


class Thoughts(Struct, frozen=True):
    """Reasoning that a model wrote before its answer; the answer's text does not contain it.

    Source: engine rules, section 16.
    """

    text: str
    opening: str = ""
    """The opening tag as written, with white space before it; empty if the chat template opened the thought or the
    server returned the thought separately."""
    closing: str = ""
    """The closing tag as written; empty if the thought is unfinished or the server returned it separately."""
    is_finished: bool = True
    """``False``: the response ended inside the thought, so there is no answer."""

    def before(self, answer: str) -> str:
        """Return the text as the model wrote it: the tags, the thought and the answer."""
        if not self.opening and not self.closing:
            return answer
        return f"{self.opening}{self.text}{self.closing}{answer}"


def _token_count(value: Any) -> int | None:
    """Convert a count to ``int`` (also from numpy integers); ``None`` if it is not a count."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    count = index(value)
    return count if 0 <= count < MOST_TOKENS else None


class ResponseError(Struct, frozen=True):
    """Reason why a request was given up, after all retries."""

    kind: ErrorKind
    message: str
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class GeneratedImage:
    """A picture that a model generated, identified by its content."""

    sha256: str
    """Hexadecimal SHA-256 of the file."""
    media_type: str
    """``image/png``, ``image/jpeg``, ``image/webp`` or ``image/gif``."""
    data: bytes | None = field(default=None, repr=False, compare=False)
    """The file's bytes; ``None`` once the engine has stored them under ``file_name``."""
    path: str | None = field(default=None, compare=False)
    """Path of the file once the engine has stored it."""

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str) -> GeneratedImage:
        return cls(hashlib.sha256(data).hexdigest(), media_type, data)

    @property
    def file_name(self) -> str:
        """File name for storage; equal pictures have equal names."""
        return f"{self.sha256}.{self.media_type.rpartition('/')[2]}"


@dataclass(frozen=True, slots=True)
class SentMedia:
    """A picture, video or sound as it was sent to the model; fields that do not apply are empty."""

    type: Literal["image", "video", "audio"]
    path: str = ""
    """Absolute path of the source file."""
    url: str = ""
    """URL without its query, which may hold a key."""
    name: str = ""
    """Name that the data give with the bytes."""
    sha256: str = ""
    """SHA-256 of the source's bytes; of mode, size and pixels for a picture in memory."""
    nbytes: int | None = None
    """Encoded size as sent, before base64."""
    width: int | None = None
    height: int | None = None
    seconds: float | None = None
    frames: tuple[int, ...] = ()
    """Numbers of the sent frames in the video, from 0."""
    times: tuple[float, ...] = ()
    """Times of these frames in seconds from the video's start."""
    fps: float | None = None
    """Rate of the sent frames per second."""
    processed: tuple[int, ...] = field(default=(), compare=False)
    """Width and height after resizing by the processor of a local model; those of a tile if it cuts tiles."""
    tokens: int | None = field(default=None, compare=False)
    """Tokens that represent it in the prompt."""
    stored: tuple[str, ...] = field(default=(), compare=False)
    """Paths of the files that the run keeps of it, below the folder of the samples: one, or one for each frame."""
    not_stored: str = field(default="", compare=False)
    """Why the run keeps no file of it: ``budget``, ``size`` or ``disk``."""
    origin: str = field(default="", compare=False)
    """``task`` if the task gave it to a model that does not report what it sends; empty if it is as sent."""

    @property
    def pictures(self) -> int:
        """Number of pictures that a model receives if it takes a video as frames."""
        return {"image": 1, "video": len(self.frames)}.get(self.type, 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the non-empty fields, with tuples as lists and ``nbytes`` as ``bytes``."""
        return {
            "bytes" if name == "nbytes" else name: list(value) if isinstance(value, tuple) else value
            for name in SentMedia.__dataclass_fields__
            if (value := getattr(self, name)) not in (None, "", ())
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SentMedia:
        """Reverse ``to_dict``; unknown keys are ignored. Raises ``msgspec.ValidationError``."""
        convert(data, Medium)
        values: dict[str, Any] = {
            "nbytes" if key == "bytes" else key: tuple(value) if isinstance(value, list) else value
            for key, value in data.items()
            if key in Medium.__struct_fields__
        }
        return cls(**values)


class Sight(Struct, frozen=True):
    """The pictures of a request after the model's own processor; unknown parts are empty."""

    sizes: tuple[tuple[int, int], ...] = ()
    """Width and height of each picture and frame, in order."""
    tokens: int | None = None
    """Tokens that represent all pictures in the prompt."""
    tokens_of_each: tuple[int, ...] = ()
    """Tokens that represent each picture."""

    def of(self, media: Sequence[SentMedia]) -> tuple[SentMedia, ...]:
        """Return the media of the request with these facts.

        If only the total of the tokens is known, it is divided by the number of pictures of each medium.
        """
        counts = [medium.pictures for medium in media]
        total = sum(counts)
        if not total:
            return tuple(media)
        shares = list(self.tokens_of_each) if len(self.tokens_of_each) == total else _shared(self.tokens, total)
        sizes = self.sizes if len(self.sizes) == total else ()
        made, at = [], 0
        for medium, count in zip(media, counts, strict=True):
            if count:
                own, at = slice(at, at + count), at + count
                tokens = sum(shares[own]) if shares else None
                medium = replace(medium, processed=sizes[own][0] if sizes else (), tokens=tokens)
            made.append(medium)
        return tuple(made)


def _shared(tokens: int | None, pictures: int) -> list[int]:
    """Divide a total into whole numbers that differ by at most 1."""
    if tokens is None:
        return []
    each, rest = divmod(tokens, pictures)
    return [each + (number < rest) for number in range(pictures)]


class SentPart(Struct, frozen=True):
    """A piece of a message: a text, a sent medium, a picture from the model or a tool, or a tool call."""

    text: str | None = None
    span: tuple[int, int] | None = None
    """In place of ``text``: its range in the text of the prompt (``Request.context``, ``Answer.input``)."""
    kind: str = ""
    """Kind of a medium: ``image``, ``video`` or ``audio``."""
    medium: int | None = None
    """Number of the medium among the distinct media of the owner; ``None``: unknown."""
    frame: int | None = None
    """Number of a single frame of the video."""
    picture: GeneratedImage | None = None
    call: Call | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the piece as JSON."""
        if self.call is not None:
            return {"call": structs.asdict(self.call)}
        if self.span is not None:
            return {"input": list(self.span)}
        if self.text is not None:
            return {"text": self.text}
        if self.picture is not None:
            return {"picture": [self.picture.sha256, self.picture.media_type]}
        if self.medium is None:
            return {"type": self.kind}
        return {"media": self.medium} if self.frame is None else {"media": self.medium, "frame": self.frame}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SentPart:
        """Reverse ``to_dict``; ``data`` has the form of a ``MessagePart``."""
        span, picture, call = data.get("input"), data.get("picture"), data.get("call")
        return cls(
            text=data.get("text"),
            span=(span[0], span[1]) if span else None,
            kind=data.get("type", ""),
            medium=data.get("media"),
            frame=data.get("frame"),
            picture=GeneratedImage(picture[0], picture[1]) if picture else None,
            call=convert(call, Call) if call else None,
        )


class SentMessage(Struct, frozen=True):
    """A message of a conversation, sent to the model or received from it."""

    role: str
    """``system``, ``user``, ``assistant`` or ``tool``: the result of a call; without a ``call`` an observation by the
    task that was not sent."""
    content: tuple[SentPart, ...]
    round: int = 0
    after: int | None = None
    """For the first message of a round: it followed only this many of the conversation's first messages."""
    continues: bool = False
    """For the first message of a round: it followed all messages of the previous round and its answer."""
    call: str = ""
    """For the result of a tool: the id of the call."""

    def to_dict(self) -> dict[str, Any]:
        """Return the message as JSON, without empty fields."""
        record = {
            "role": self.role,
            "content": [part.to_dict() for part in self.content],
            "round": self.round or None,
            "after": self.after,
            "continues": self.continues or None,
            "call": self.call or None,
        }
        return {key: value for key, value in record.items() if value is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SentMessage:
        """Reverse ``to_dict``; unknown keys are ignored. Raises ``msgspec.ValidationError``."""
        convert(data, Message)
        return cls(
            role=data["role"],
            content=tuple(SentPart.from_dict(part) for part in data["content"]),
            round=data.get("round", 0),
            after=data.get("after"),
            continues=data.get("continues", False),
            call=data.get("call", ""),
        )


_INVISIBLE = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp", "Mn", "Me"})
"""Unicode categories of controls, formats, blanks and combining marks."""
_FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols without a shape: Hangul fillers and the empty Braille pattern."""


def is_invisible(text: str) -> bool:
    """Return whether a text is empty or consists of blanks, controls and zero-width characters."""
    return all(character in _FILLERS or category(character) in _INVISIBLE for character in text)


Part = str | GeneratedImage
"""A piece of an interleaved answer."""


class Response(Struct, frozen=True):
    """A model's answer to one request, or an error.

    Exactly one of these is set: ``text`` (generation), ``rounds`` (a legacy multi-round call), ``loglikelihood``
    (log probability of the continuation), ``error``.
    """

    request_id: str
    text: str | None = None
    parts: tuple[Part, ...] = ()
    """Texts and pictures of an interleaved answer, in order; ``text`` then holds the joined texts."""
    rounds: tuple[str, ...] | None = None
    loglikelihood: float | None = None
    is_greedy: bool | None = None
    is_loss: bool = False
    """The log probability came from a legacy plugin and is a loss (lower is likelier)."""
    error: ResponseError | None = None
    finish_reason: str | None = None
    """``stop``, ``length`` (truncated), ``content_filter`` (refusal), ...; a failure is an ``error`` instead."""
    usage: Usage | None = None
    latency: float | None = None
    """Seconds from sending the request to the answer."""
    attempts: int = 1
    batch: tuple[str, ...] = ()
    """Ids of the requests in the same batch, if the answer may depend on them."""
    model: str | None = None
    """The model name that the server reported."""
    media: tuple[SentMedia, ...] = ()
    """Media that were sent with the request, as far as they are known. Set by the engine."""
    sight: Sight | None = None
    """Facts about the request's pictures from the model's processor. The engine moves them into ``media``."""
    messages: tuple[SentMessage, ...] = ()
    """Messages that the request added to its conversation; empty if they are unknown, or are only one user text, the
    request's context. Set by the engine."""
    tool_messages: tuple[SentMessage, ...] = ()
    """Messages between the model and its tools before the answer."""
    thoughts: Thoughts | None = None
    """Reasoning before the answer; ``text`` is then only the answer, empty if the thought is unfinished."""
    stops: tuple[str, ...] = ()
    """Stop strings that could end the answer."""
    ended_by: str | None = None
    """Stop string that ended the answer; empty: another reason ended it; ``None``: no stop strings, or unknown."""
    is_cached: bool = False
    """The response came from the response cache, so this run did not pay for it. Set by the engine."""
    ttft: float | None = None
    """Seconds from sending the request to the first piece of the answer, if it was streamed."""
    tokens_per_second: float | None = None
    """Output tokens after the first, per second from the first piece of a streamed answer to its last."""

    @classmethod
    def failure(cls, request_id: str, kind: ErrorKind, message: str, attempts: int = 1) -> Response:
        return cls(request_id, error=ResponseError(kind, message, attempts), attempts=attempts)

    @classmethod
    def interleaved(cls, request_id: str, parts: Sequence[Part], **details: Any) -> Response:
        """Make a response of texts and pictures; without a picture it is a plain text."""
        text = "".join(part for part in parts if isinstance(part, str))
        has_image = any(isinstance(part, GeneratedImage) for part in parts)
        return cls(request_id, text=text, parts=tuple(parts) if has_image else (), **details)


def sent_media(responses: Sequence[Response]) -> tuple[SentMedia, ...]:
    """Return the distinct media of several requests, in order."""
    return tuple(dict.fromkeys(medium for response in responses for medium in response.media))
