"""Answers of a model: texts, pictures, likelihoods, errors, and what they cost."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from operator import index
from typing import Any, Literal
from unicodedata import category

MOST_TOKENS = 2**53
"""A larger count is not believed: it is no whole number in most servers' JSON."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one response; ``None`` if the back end does not say.

    Servers report fractions, negative and absurd numbers too: a count that is no whole number from 0 is unknown.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("input_tokens", "output_tokens", "reasoning_tokens"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or not 0 <= value < MOST_TOKENS):
                object.__setattr__(self, name, _token_count(value))

    @property
    def is_known(self) -> bool:
        """Both the tokens read and the tokens written are known."""
        return self.input_tokens is not None and self.output_tokens is not None

    def to_dict(self) -> dict[str, int | None]:
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "reasoning_tokens": self.reasoning_tokens,
        }


@dataclass(frozen=True, slots=True)
class Thoughts:
    """Reasoning that a model wrote before its answer, apart from the answer's text.

    Source: engine rules, section 16.
    """

    text: str
    opening: str = ""
    """The opening tag as it was written, with white space before it; empty if the chat template opened the thought or
    the server returned it apart."""
    closing: str = ""
    """The closing tag as it was written; empty if the thought is unfinished or the server returned it apart."""
    is_finished: bool = True
    """The model went on to its answer. ``False``: the response ended inside the thought, so there is no answer."""

    def before(self, answer: str) -> str:
        """Return the text as the model wrote it: inline tags, the thought and the answer."""
        if not self.opening and not self.closing:
            return answer
        return f"{self.opening}{self.text}{self.closing}{answer}"


def _token_count(value: Any) -> int | None:
    """Return a count as ``int`` (numpy's whole numbers too), ``None`` if it cannot be one."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    count = index(value)
    return count if 0 <= count < MOST_TOKENS else None


ErrorKind = Literal[
    "rate_limit", "server_error", "timeout", "connection", "malformed", "bad_request", "auth", "refused",
    "out_of_memory", "media", "document", "internal", "budget", "tool",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ResponseError:
    """Reason for which a request was given up, after all retries."""

    kind: ErrorKind
    message: str
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class GeneratedImage:
    """A picture that a model made, named by its content."""

    sha256: str
    """Of the file's bytes, in hexadecimal."""
    media_type: str
    """``image/png``, ``image/jpeg``, ``image/webp`` or ``image/gif``."""
    data: bytes | None = field(default=None, repr=False, compare=False)
    """The file's bytes; ``None`` once the engine has stored them under ``file_name``."""
    path: str | None = field(default=None, compare=False)
    """Path of the file, once the engine has stored it."""

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str) -> GeneratedImage:
        return cls(hashlib.sha256(data).hexdigest(), media_type, data)

    @property
    def file_name(self) -> str:
        """Name under which the picture is stored: equal pictures have equal names."""
        return f"{self.sha256}.{self.media_type.rpartition('/')[2]}"


@dataclass(frozen=True, slots=True)
class SentMedia:
    """A picture, video or sound as it went to the model; fields that do not apply are empty."""

    type: Literal["image", "video", "audio"]
    path: str = ""
    """Of the file that it comes from, absolute."""
    url: str = ""
    """Address without its query, which may hold a key."""
    name: str = ""
    """That the data give along with its bytes."""
    sha256: str = ""
    """Of the source's bytes; of mode, size and pixels where it is a picture in memory."""
    nbytes: int | None = None
    """Encoded as it was sent, before base64."""
    width: int | None = None
    height: int | None = None
    seconds: float | None = None
    frames: tuple[int, ...] = ()
    """Numbers of the frames in the video, from 0."""
    times: tuple[float, ...] = ()
    """Of the frames, in seconds from the video's start."""
    fps: float | None = None
    """Frames a second among those that were sent."""
    processed: tuple[int, ...] = field(default=(), compare=False)
    """Width and height after the processor of a local model has resized it; of one that cuts pictures into tiles, a
    tile's."""
    tokens: int | None = field(default=None, compare=False)
    """Tokens that represent it in the model's prompt."""

    @property
    def pictures(self) -> int:
        """Pictures that a model without videos of its own gets of it."""
        return {"image": 1, "video": len(self.frames)}.get(self.type, 0)

    def to_dict(self) -> dict[str, Any]:
        """The fields that are not empty, tuples as lists, ``nbytes`` as ``bytes``."""
        given = ((item.name, getattr(self, item.name)) for item in fields(self))
        names = {"nbytes": "bytes"}
        return {
            names.get(name, name): list(value) if isinstance(value, tuple) else value
            for name, value in given
            if value not in ("", None, ())
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SentMedia:
        """Undo ``to_dict``; keys that it does not write are passed over."""
        names = {"nbytes": "bytes"}
        given: dict[str, Any] = {
            item.name: tuple(value) if isinstance(value, list) else value
            for item in fields(cls)
            if (value := data.get(names.get(item.name, item.name))) is not None
        }
        return cls(**given)


@dataclass(frozen=True, slots=True)
class Sight:
    """The pictures of a request as a model's own processor made them; parts that it does not state are empty."""

    sizes: tuple[tuple[int, int], ...] = ()
    """Width and height of each picture and frame, in their order."""
    tokens: int | None = None
    """Tokens that represent all of them in the prompt."""
    tokens_of_each: tuple[int, ...] = ()
    """Tokens that represent each."""

    def of(self, media: Sequence[SentMedia]) -> tuple[SentMedia, ...]:
        """Add it to the media of the request.

        Where the processor tells the sum of the tokens alone, media share it by their number of pictures.
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
    """Divide a sum into whole numbers that differ by 1 at most."""
    if tokens is None:
        return []
    each, rest = divmod(tokens, pictures)
    return [each + (number < rest) for number in range(pictures)]


@dataclass(frozen=True, slots=True)
class SentCall:
    """A call of a tool in a message of the model."""

    id: str
    name: str
    arguments: str
    """As the model wrote them."""


@dataclass(frozen=True, slots=True)
class SentPart:
    """A piece of a message: exactly one of a text, a medium that was sent, a picture that the model or a tool made, and
    a call of a tool."""

    text: str | None = None
    span: tuple[int, int] | None = None
    """The text is these characters of the prompt's text (``Request.context``, ``Answer.input``)."""
    kind: str = ""
    """Of a medium: ``image``, ``video`` or ``audio``."""
    medium: int | None = None
    """Its number among the different media of the owner; ``None``: the back end does not tell."""
    frame: int | None = None
    """The piece is this one of the video's frames alone."""
    picture: GeneratedImage | None = None
    call: SentCall | None = None

    def to_dict(self) -> dict[str, Any]:
        if self.call is not None:
            return {"call": asdict(self.call)}
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
        span, picture = data.get("input"), data.get("picture")
        return cls(
            text=data.get("text"),
            span=None if span is None else (span[0], span[1]),
            kind=data.get("type", ""),
            medium=data.get("media"),
            frame=data.get("frame"),
            picture=None if picture is None else GeneratedImage(picture[0], picture[1]),
            call=SentCall(**data["call"]) if "call" in data else None,
        )


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message of a conversation, as it went to the model or came from it."""

    role: str
    """``system``, ``user``, ``assistant``; ``tool``: the result of a call, or, without one, what the task made of an
    answer and did not send."""
    content: tuple[SentPart, ...]
    round: int = 0
    after: int | None = None
    """Of a round's first message: the model got it after this many of the conversation's first messages alone."""
    continues: bool = False
    """Of a round's first message: the model got it after all that the round before had sent, and its answer."""
    call: str = ""
    """Of a tool's result: the id of the call."""

    def to_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {"role": self.role, "content": [part.to_dict() for part in self.content]}
        if self.round:
            record["round"] = self.round
        if self.after is not None:
            record["after"] = self.after
        if self.continues:
            record["continues"] = True
        if self.call:
            record["call"] = self.call
        return record

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SentMessage:
        content = tuple(SentPart.from_dict(part) for part in data["content"])
        continues, call = bool(data.get("continues")), data.get("call", "")
        return cls(data["role"], content, data.get("round", 0), data.get("after"), continues, call)


_INVISIBLE = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp", "Mn", "Me"})
"""Unicode categories of controls, formats, blanks and marks that need a character before them."""
_FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and signs that are drawn as nothing: Hangul fillers and the empty Braille pattern."""


def is_invisible(text: str) -> bool:
    """Return whether a text shows nothing: no character, or only blanks, controls and characters of no width."""
    return all(character in _FILLERS or category(character) in _INVISIBLE for character in text)


Part = str | GeneratedImage
"""A piece of an interleaved answer."""


@dataclass(frozen=True, slots=True)
class Response:
    """A model's answer to one request, or the error that it ended with.

    Exactly one of these is set: ``text`` (generation), ``rounds`` (a legacy multi-round call), ``loglikelihood``
    (natural logarithm of the continuation's probability; higher is likelier), ``error``.
    """

    request_id: str
    text: str | None = None
    parts: tuple[Part, ...] = ()
    """An interleaved answer in its order; ``text`` is then the texts among them joined. Empty for plain text."""
    rounds: tuple[str, ...] | None = None
    loglikelihood: float | None = None
    is_greedy: bool | None = None
    is_loss: bool = False
    """The likelihood came from a legacy plugin and is a loss (lower is likelier)."""
    error: ResponseError | None = None
    finish_reason: str | None = None
    """``stop``, ``length`` (truncated), ``content_filter`` (refusal), ... ``error`` is none: it is a failure."""
    usage: Usage | None = None
    latency: float | None = None
    """Seconds from hand-over to answer."""
    attempts: int = 1
    batch: tuple[str, ...] = ()
    """Ids of the requests that were generated in the same batch, if the answer may depend on them."""
    model: str | None = None
    """The model that a server says it served."""
    media: tuple[SentMedia, ...] = ()
    """Media that went out with the request, as far as its preparation told; set by the engine."""
    sight: Sight | None = None
    """What the model's processor made of the request's pictures; the engine adds it to ``media`` and keeps it there."""
    messages: tuple[SentMessage, ...] = ()
    """Messages that the request added to its conversation; empty where they are not known, or are no more than one text
    of the user, the request's context. Set by the engine."""
    tool_messages: tuple[SentMessage, ...] = ()
    """What the model and its tools said to each other before the answer."""
    thoughts: Thoughts | None = None
    """Reasoning before the answer; ``text`` is then the answer alone, empty if the thought is unfinished."""
    stops: tuple[str, ...] = ()
    """The stop strings that could end the answer."""
    ended_by: str | None = None
    """The stop string that did; empty: none did; ``None``: there are none, or the server does not say."""
    is_cached: bool = False
    """It came out of the response cache: nothing was paid for it in this run. Set by the engine."""

    @classmethod
    def failure(cls, request_id: str, kind: ErrorKind, message: str, attempts: int = 1) -> Response:
        return cls(request_id, error=ResponseError(kind, message, attempts), attempts=attempts)

    @classmethod
    def interleaved(cls, request_id: str, parts: Sequence[Part], **details: Any) -> Response:
        """An answer of texts and pictures; one without a picture is a plain text."""
        text = "".join(part for part in parts if isinstance(part, str))
        has_image = any(isinstance(part, GeneratedImage) for part in parts)
        return cls(request_id, text=text, parts=tuple(parts) if has_image else (), **details)


def sent_media(responses: Sequence[Response]) -> tuple[SentMedia, ...]:
    """The media of several requests in order, each once."""
    return tuple(dict.fromkeys(medium for response in responses for medium in response.media))
