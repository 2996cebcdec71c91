"""Types of the lines of a run's journals, and of ``run.json``.

Values that JSON lacks are wrapped (``storage.codec``): ``{"__tuple__": [...]}``, ``{"__float__": "nan"}``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from lmms_eval.api.response import ErrorKind
from lmms_eval.results.schema.conversation import DESCRIBED, JudgeVerdict, Medium, Message
from lmms_eval.storage.run_folder import RunState

Checksum = Annotated[str, Field(pattern="^[0-9a-f]{8}$")]
"""CRC-32 of the line's bytes before the comma of this field."""


@with_config(DESCRIBED)
class ResponseFailure(TypedDict):
    """The failure of a request after all retries."""

    kind: ErrorKind
    """Kind of the error."""
    message: str
    """Full error message, with secrets masked."""
    attempts: int
    """How often the request was sent."""


@with_config(DESCRIBED)
class ThoughtsRecord(TypedDict):
    """A model's thoughts before its answer."""

    text: str
    """The thoughts."""
    opening: NotRequired[str]
    """The opening tag as written, if the response contains it."""
    closing: NotRequired[str]
    """The closing tag as written, if the response contains it."""
    finished: NotRequired[Literal[False]]
    """The response ended within the thoughts."""


@with_config(DESCRIBED)
class ResponseLine(TypedDict):
    """A line of ``responses-RANK.jsonl``, with one of ``text``, ``rounds``, ``loglikelihood`` and ``error``."""

    id: str
    """Task, document, repeat, round and number of the request, separated by slashes."""
    crc: Checksum
    """CRC-32 of the line's bytes before the comma of this field."""
    text: NotRequired[str | None]
    """The answer, without the thoughts before it."""
    thoughts: NotRequired[ThoughtsRecord]
    """The thoughts before it."""
    stops: NotRequired[list[str]]
    """The stop strings that could end it."""
    ended_by: NotRequired[str]
    """The stop string that ended it, or empty; absent if the server does not report it."""
    parts: NotRequired[list[Any]]
    """Texts, and pictures by hash and media type."""
    rounds: NotRequired[list[Any]]
    """Answers of all rounds of the class interface."""
    loglikelihood: NotRequired[list[Any]]
    """Log probability, whether it is the greedy answer, and whether it is a loss instead."""
    error: NotRequired[ResponseFailure]
    """Why the request has no answer."""
    usage: NotRequired[list[int | None]]
    """Input, output and reasoning tokens."""
    finish_reason: NotRequired[str]
    """How generation ended."""
    latency: NotRequired[float]
    """Seconds."""
    model: NotRequired[str]
    """Model that the server reports."""
    attempts: NotRequired[int]
    """How often the request was sent, if more than once."""
    batch: NotRequired[list[str]]
    """Ids of the requests in the same batch."""
    media: NotRequired[list[Medium]]
    """Media that were sent, each once, in order."""
    messages: NotRequired[list[Message]]
    """Messages that the request added to the conversation."""
    tool_messages: NotRequired[list[Message]]
    """Tool calls before the answer, and their results."""
    cached: NotRequired[Literal[True]]
    """The response came from the response cache."""
    prompt: NotRequired[str]
    """Fingerprint of the request as rendered."""


@with_config(DESCRIBED)
class JudgementLine(ResponseLine):
    """A line of ``judgements-RANK.jsonl``: a judge's reply."""

    key: str
    """Hash over judge, prompt and generation options."""


@with_config(DESCRIBED)
class AnswerRecord(TypedDict):
    """An answer to a document."""

    value: Any
    """Text, texts of the rounds, or likelihoods of the choices, without thoughts; null if the request failed."""
    thoughts: NotRequired[list[ThoughtsRecord | None]]
    """Thoughts of each request."""
    stops: NotRequired[list[str]]
    """The stop strings that could end the answer to a request."""
    ended_by: NotRequired[list[str | None]]
    """For each request, the stop string that ended its answer, or empty; null if it is not known."""
    input: str
    """First text argument of the request."""
    parts: NotRequired[list[Any]]
    """Texts, and pictures by hash and media type."""
    usage: NotRequired[list[list[int | None] | None]]
    """Input, output and reasoning tokens of each request."""
    finish_reason: NotRequired[str]
    """How generation ended."""
    latency: NotRequired[float]
    """Seconds."""
    model: NotRequired[str]
    """Model that the server reports."""
    error: NotRequired[str]
    """Why the document has no answer."""
    is_loss: NotRequired[Literal[False]]
    """The likelihoods are log probabilities, not losses."""
    media: NotRequired[list[Medium]]
    """Media that were sent."""
    messages: NotRequired[list[Message]]
    """The conversation."""
    attempts: NotRequired[int]
    """How often the request was sent, if more than once."""


@with_config(DESCRIBED)
class PipelineRecord(TypedDict):
    """Scores of a document through one filter pipeline."""

    filter: str
    """Name of the pipeline."""
    filtered: Any
    """The answer after filters."""
    metrics: dict[str, Any]
    """The document's metric values."""
    status: NotRequired[Literal["unscored"]]
    """Absent if the document is scored."""
    reason: NotRequired[str]
    """Why the document is unscored."""
    per_answer: NotRequired[list[dict[str, Any]]]
    """Metrics of each repeat."""
    drew: NotRequired[Literal[True]]
    """Scoring drew a choice at random."""
    reading: NotRequired[dict[str, Any]]
    """The rule that read the answer, and what it found."""


@with_config(DESCRIBED)
class ScoreLine(TypedDict):
    """A line of ``scores-RANK.jsonl``: a finished document, with ``scores`` or ``failed``."""

    task: str
    """Name of the task."""
    doc_id: int
    """Number of the document in its split."""
    answers: list[AnswerRecord]
    """Answers, one per repeat."""
    key: str
    """Hash over everything but the answers that the scores depend on."""
    crc: Checksum
    """CRC-32 of the line's bytes before the comma of this field."""
    target: NotRequired[Any]
    """Reference answer, as text."""
    doc: NotRequired[dict[str, Any]]
    """The document's text fields."""
    doc_hash: NotRequired[str]
    """SHA-256 of the document."""
    media: NotRequired[list[Any]]
    """Up to four pictures of the document."""
    scores: NotRequired[list[PipelineRecord]]
    """Scores, one entry per filter pipeline."""
    judge: NotRequired[list[JudgeVerdict]]
    """Replies of the judge."""
    failed: NotRequired[str]
    """Why the document has no scores."""


@with_config(ConfigDict(use_attribute_docstrings=True))
class RunFile(TypedDict):
    """Content of ``run.json``, without its checksum line. Processes that joined write only the first three keys."""

    key: str
    """Hash over everything that can change an answer; also the folder's name."""
    state: RunState
    """State of the run; ``running`` also after a kill."""
    date: str
    """First start of the run."""
    stamp: NotRequired[str | None]
    """Date stamp in the names of the result files."""
    starts: NotRequired[int]
    """How often the run was started."""
    arguments: NotRequired[dict[str, Any]]
    """The options, with secrets masked."""
    model: NotRequired[dict[str, Any]]
    """Back end and identity of the model."""
    launcher: NotRequired[str]
    """The process that started the run, to distinguish the attempts of an elastic launcher."""
    tasks: NotRequired[dict[str, Any]]
    """Metrics of each task, needed to read its numbers from the journal."""
    early_stops: NotRequired[dict[str, Any]]
    """Tasks that ``--until`` ended early."""
    command: NotRequired[str]
    """Command that asks for the missing answers; empty if none are missing."""
