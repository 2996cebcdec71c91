"""Records of a run's journals, each defined once: its keys as they are written, with types and meanings.

Readers check records against these classes. The JSON Schemas come from them too; the docstring of a field is its
description. Writers leave out the keys of fields that are ``UNSET``. Values that JSON lacks are wrapped
(``storage.codec``): ``{"__tuple__": [...]}``, ``{"__float__": "nan"}``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from msgspec import UNSET, Meta, Struct, UnsetType

ErrorKind = Literal[
    "rate_limit", "server_error", "timeout", "connection", "malformed", "bad_request", "auth", "refused",
    "out_of_memory", "media", "document", "internal", "budget", "tool",
]  # fmt: skip
"""Kind of the error of a response."""
KnownError = Annotated[str, Meta(extra_json_schema={"enum": list(get_args(ErrorKind))})]
"""Readers accept other kinds too, which a later version may add."""
MediumKind = Annotated[str, Meta(extra_json_schema={"enum": ["image", "video", "audio"]})]
"""Readers accept other kinds too."""
Unscored = Annotated[str, Meta(extra_json_schema={"enum": ["unscored"]})]
TWO = Meta(min_length=2, max_length=2)
OnlyTrue = Annotated[bool, Meta(extra_json_schema={"const": True})]
OnlyFalse = Annotated[bool, Meta(extra_json_schema={"const": False})]


class Medium(Struct, kw_only=True, frozen=True):
    """A picture, video or sound as it went to the model; keys that do not apply are absent."""

    type: MediumKind
    """Kind of medium."""
    path: str | UnsetType = UNSET
    """Absolute path of its file."""
    url: str | UnsetType = UNSET
    """Address, without its query."""
    name: str | UnsetType = UNSET
    """Name that the data give with its bytes."""
    sha256: str | UnsetType = UNSET
    """Hash of the source's bytes; for a picture in memory, of its mode, size and pixels."""
    bytes: int | UnsetType = UNSET
    """Size as encoded for sending, before base64."""
    width: int | UnsetType = UNSET
    """Width in pixels, as sent."""
    height: int | UnsetType = UNSET
    """Height in pixels, as sent."""
    seconds: float | UnsetType = UNSET
    """Duration of a sound."""
    frames: list[int] | UnsetType = UNSET
    """Indices of the frames in the video, from 0."""
    times: list[float] | UnsetType = UNSET
    """Times of the frames, in seconds from the video's start."""
    fps: float | UnsetType = UNSET
    """Frames per second of the frames that were sent."""
    processed: list[int] | UnsetType = UNSET
    """Width and height after resizing by a local model's processor, or of one tile."""
    tokens: int | UnsetType = UNSET
    """Tokens of the medium in the model's prompt, if the back end reports them."""
    stored: list[str] | UnsetType = UNSET
    """Files that the run keeps of it, relative to the samples file (``media/SHA256.jpg``): one, or one per frame."""
    not_stored: str | UnsetType = UNSET
    """Why the run keeps no file of it: ``budget`` (``--log_media_mb``), ``size`` (``--log_media_item_mb``) or ``disk``.
    """
    origin: str | UnsetType = UNSET
    """``task``: the task gave it to a model that does not report what it sends."""


class Call(Struct, frozen=True):
    """A tool call by the model."""

    id: str
    """Id that the call's result names."""
    name: str
    """Name of the tool."""
    arguments: str
    """Arguments as JSON, as the model wrote them."""


class MessagePart(Struct, kw_only=True, frozen=True):
    """A piece of a message."""

    text: str | UnsetType = UNSET
    """A text."""
    input: Annotated[list[int], TWO] | UnsetType = UNSET
    """Begin and end of the text within the prompt's text."""
    media: int | UnsetType = UNSET
    """Index of a medium: in samples, in ``sent_media``; in journals, in ``media``."""
    frame: int | UnsetType = UNSET
    """Index of a single frame of that video."""
    type: MediumKind | UnsetType = UNSET
    """A medium without further facts; with ``path``, a picture that the model or a tool made."""
    path: str | UnsetType = UNSET
    """Path of the picture's file."""
    sha256: str | UnsetType = UNSET
    """Hash of its bytes."""
    picture: Annotated[list[str], TWO] | UnsetType = UNSET
    """In journals: hash and media type of a picture that the model or a tool made."""
    call: Call | UnsetType = UNSET
    """A call of a tool."""


class Message(Struct, kw_only=True, frozen=True):
    """A message of a conversation, as it went to the model or came from it."""

    role: str
    """``system``, ``user``, ``assistant`` or ``tool``."""
    content: list[MessagePart]
    """Its pieces, in order."""
    round: int | UnsetType = UNSET
    """Number of the round, from 0."""
    after: int | UnsetType = UNSET
    """The model received it after only this many of the conversation's first messages."""
    continues: OnlyTrue | UnsetType = UNSET
    """The model received it after all messages of the previous round and its answer."""
    call: str | UnsetType = UNSET
    """For a tool's result: the id of the call."""


class JudgeVerdict(Struct, kw_only=True, frozen=True):
    """A judge's reply to one question about a document."""

    name: str
    """Name of the question."""
    text: str | None
    """The reply."""
    accepted: Any
    """Value read from the reply."""
    model: str | None
    """Model that replied."""
    prompt: str | UnsetType = UNSET
    """The question as rendered."""
    error: str | UnsetType = UNSET
    """Why there is no reply."""
    replies: list[Any] | UnsetType = UNSET
    """All replies, if there were several attempts."""
    usage: list[int | None] | UnsetType = UNSET
    """Input, output and reasoning tokens."""
    details: dict[str, Any] | UnsetType = UNSET
    """Further facts that the task records."""


class ResponseFailure(Struct, kw_only=True, frozen=True):
    """The failure of a request after all retries."""

    kind: KnownError
    """Kind of the error."""
    message: str
    """Full error message, with secrets masked."""
    attempts: int
    """How often the request was sent."""


class ThoughtsRecord(Struct, kw_only=True, frozen=True):
    """A model's thoughts before its answer."""

    text: str
    """The thoughts."""
    opening: str | UnsetType = UNSET
    """The opening tag as written, if the response contains it."""
    closing: str | UnsetType = UNSET
    """The closing tag as written, if the response contains it."""
    finished: OnlyFalse | UnsetType = UNSET
    """The response ended within the thoughts."""


class ResponseLine(Struct, kw_only=True, frozen=True):
    """A line of ``responses-RANK.jsonl``, with one of ``text``, ``rounds``, ``loglikelihood`` and ``error``."""

    id: str
    """Task, document, repeat, round and number of the request, separated by slashes."""
    text: str | UnsetType | None = UNSET
    """The answer, without the thoughts before it."""
    parts: list[Any] | UnsetType = UNSET
    """Texts, and pictures by hash and media type."""
    error: ResponseFailure | UnsetType = UNSET
    """Why the request has no answer."""
    rounds: list[Any] | UnsetType = UNSET
    """Answers of all rounds of the class interface."""
    loglikelihood: list[Any] | UnsetType = UNSET
    """Log probability, whether it is the greedy answer, and whether it is a loss instead."""
    usage: list[int | None] | UnsetType = UNSET
    """Input, output and reasoning tokens."""
    thoughts: ThoughtsRecord | UnsetType = UNSET
    """The thoughts before it."""
    stops: list[str] | UnsetType = UNSET
    """The stop strings that could end it."""
    finish_reason: str | UnsetType = UNSET
    """How generation ended."""
    ended_by: str | UnsetType = UNSET
    """The stop string that ended it, or empty; absent if the server does not report it."""
    latency: float | UnsetType = UNSET
    """Seconds."""
    ttft: float | UnsetType = UNSET
    """Seconds to the first piece of a streamed answer."""
    tokens_per_second: float | UnsetType = UNSET
    """Output tokens after the first, per second from the first piece of a streamed answer to its last."""
    model: str | UnsetType = UNSET
    """Model that the server reports."""
    attempts: int | UnsetType = UNSET
    """How often the request was sent, if more than once."""
    batch: list[str] | UnsetType = UNSET
    """Ids of the requests in the same batch."""
    media: list[Medium] | UnsetType = UNSET
    """Media that were sent, each once, in order."""
    messages: list[Message] | UnsetType = UNSET
    """Messages that the request added to the conversation."""
    tool_messages: list[Message] | UnsetType = UNSET
    """Tool calls before the answer, and their results."""
    cached: OnlyTrue | UnsetType = UNSET
    """The response came from the response cache."""
    prompt: str | UnsetType = UNSET
    """Fingerprint of the request as rendered."""


class JudgementLine(ResponseLine, kw_only=True, frozen=True):
    """A line of ``judgements-RANK.jsonl``: a judge's reply."""

    key: str
    """Hash over judge, prompt and generation options."""


class AnswerRecord(Struct, kw_only=True, frozen=True):
    """An answer to a document."""

    value: Any
    """Text, texts of the rounds, or likelihoods of the choices, without thoughts; null if the request failed."""
    input: str
    """First text argument of the request."""
    parts: list[Any] | UnsetType = UNSET
    """Texts, and pictures by hash and media type."""
    usage: list[list[int | None] | None] | UnsetType = UNSET
    """Input, output and reasoning tokens of each request."""
    thoughts: list[ThoughtsRecord | None] | UnsetType = UNSET
    """Thoughts of each request."""
    stops: list[str] | UnsetType = UNSET
    """The stop strings that could end the answer to a request."""
    ended_by: list[str | None] | UnsetType = UNSET
    """For each request, the stop string that ended its answer, or empty; null if it is not known."""
    finish_reason: str | UnsetType = UNSET
    """How generation ended."""
    latency: float | UnsetType = UNSET
    """Seconds."""
    model: str | UnsetType = UNSET
    """Model that the server reports."""
    error: str | UnsetType = UNSET
    """Why the document has no answer."""
    is_loss: OnlyFalse | UnsetType = UNSET
    """The likelihoods are log probabilities, not losses."""
    media: list[Medium] | UnsetType = UNSET
    """Media that were sent."""
    messages: list[Message] | UnsetType = UNSET
    """The conversation."""
    attempts: int | UnsetType = UNSET
    """How often the request was sent, if more than once."""


class PipelineRecord(Struct, kw_only=True, frozen=True):
    """Scores of a document through one filter pipeline."""

    filter: str
    """Name of the pipeline."""
    filtered: Any
    """The answer after filters."""
    metrics: dict[str, Any]
    """The document's metric values."""
    status: Unscored | UnsetType = UNSET
    """Absent if the document is scored."""
    reason: str | UnsetType = UNSET
    """Why the document is unscored."""
    per_answer: list[dict[str, Any]] | UnsetType = UNSET
    """Metrics of each repeat."""
    per_verdict: list[list[dict[str, Any]]] | UnsetType = UNSET
    """For each repeat, its metrics by each asking of the judge."""
    drew: OnlyTrue | UnsetType = UNSET
    """Scoring drew a choice at random."""
    reading: dict[str, Any] | UnsetType = UNSET
    """The rule that read the answer, and what it found."""


class ScoreRecord(Struct, kw_only=True, frozen=True):
    """A finished document, with ``scores`` or ``failed``."""

    task: str
    """Name of the task."""
    doc_id: int
    """Number of the document in its split."""
    answers: list[AnswerRecord]
    """Answers, one per repeat."""
    target: Any | UnsetType = UNSET
    """Reference answer, as text."""
    doc: dict[str, Any] | UnsetType = UNSET
    """The document's text fields."""
    doc_hash: str | UnsetType = UNSET
    """SHA-256 of the document."""
    media: list[Any] | UnsetType = UNSET
    """Up to four pictures of the document."""
    scores: list[PipelineRecord] | UnsetType = UNSET
    """Scores, one entry per filter pipeline."""
    failed: str | UnsetType = UNSET
    """Why the document has no scores."""
    judge: list[JudgeVerdict] | UnsetType = UNSET
    """Replies of the judge."""


class ScoreLine(ScoreRecord, kw_only=True, frozen=True):
    """A line of ``scores-RANK.jsonl``: a finished document, with ``scores`` or ``failed``."""

    key: str
    """Hash over everything but the answers that the scores depend on."""
