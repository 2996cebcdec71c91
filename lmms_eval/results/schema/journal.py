"""Types of the lines of a run's journals, and of ``run.json``.

In a journal what plain JSON lacks is wrapped (``storage.codec``): ``{"__tuple__": [...]}``, ``{"__float__": "nan"}``.
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
    """The reason for which a request was given up, after all retries."""

    kind: ErrorKind
    """What went wrong, in a word."""
    message: str
    """The same in full, secrets masked."""
    attempts: int
    """How often it was sent."""


@with_config(DESCRIBED)
class ThoughtsRecord(TypedDict):
    """Thoughts of a model before its answer."""

    text: str
    """The thoughts."""
    opening: NotRequired[str]
    """The opening tag as it was written, where it stood in the response."""
    closing: NotRequired[str]
    """The closing tag as it was written, where it stood in the response."""
    finished: NotRequired[Literal[False]]
    """The response ended within the thoughts."""


@with_config(DESCRIBED)
class ResponseLine(TypedDict):
    """A line of ``responses-RANK.jsonl``: one of ``text``, ``rounds``, ``loglikelihood`` and ``error``."""

    id: str
    """Task, document, repeat, round and number of the request, with slashes."""
    crc: Checksum
    """CRC-32 of the line's bytes before the comma of this field."""
    text: NotRequired[str | None]
    """The answer, without the thoughts before it."""
    thoughts: NotRequired[ThoughtsRecord]
    """The thoughts before it."""
    stops: NotRequired[list[str]]
    """The stop strings that could end it."""
    ended_by: NotRequired[str]
    """The one that did, empty if none did; absent where the server does not say."""
    parts: NotRequired[list[Any]]
    """Texts, and pictures by hash and media type."""
    rounds: NotRequired[list[Any]]
    """Answers of all rounds of the class interface."""
    loglikelihood: NotRequired[list[Any]]
    """Natural logarithm of the probability, whether it is the greedy answer, whether it is a loss instead."""
    error: NotRequired[ResponseFailure]
    """Why there is no answer."""
    usage: NotRequired[list[int | None]]
    """Input, output and reasoning tokens."""
    finish_reason: NotRequired[str]
    """How generation ended."""
    latency: NotRequired[float]
    """Seconds."""
    model: NotRequired[str]
    """That the server says it served."""
    attempts: NotRequired[int]
    """How often it was sent, where that is more than once."""
    batch: NotRequired[list[str]]
    """Ids of the requests that were generated with it."""
    media: NotRequired[list[Medium]]
    """What was sent, each medium once and in order."""
    messages: NotRequired[list[Message]]
    """What the request added to the conversation."""
    tool_messages: NotRequired[list[Message]]
    """Calls of tools before the answer, and their results."""
    cached: NotRequired[Literal[True]]
    """It came out of the response cache."""
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
    """Text, texts of the rounds, or likelihoods of the choices; null where the request failed. Without thoughts."""
    thoughts: NotRequired[list[ThoughtsRecord | None]]
    """Those of each request."""
    stops: NotRequired[list[str]]
    """The stop strings that could end the answer to a request."""
    ended_by: NotRequired[list[str | None]]
    """Of each request the stop string that ended its answer, empty if none did; null where that is not known."""
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
    """That the server says it served."""
    error: NotRequired[str]
    """Why there is none."""
    is_loss: NotRequired[Literal[False]]
    """The likelihoods are logarithms of probabilities, not losses."""
    media: NotRequired[list[Medium]]
    """What was sent."""
    messages: NotRequired[list[Message]]
    """The conversation."""
    attempts: NotRequired[int]
    """How often it was sent, where that is more than once."""


@with_config(DESCRIBED)
class PipelineRecord(TypedDict):
    """Scores of a document through one filter pipeline."""

    filter: str
    """Name of the pipeline."""
    filtered: Any
    """The answer after filters."""
    metrics: dict[str, Any]
    """The document's values."""
    status: NotRequired[Literal["unscored"]]
    """Absent where it is scored."""
    reason: NotRequired[str]
    """Why it is unscored."""
    per_answer: NotRequired[list[dict[str, Any]]]
    """Metrics of each repeat alone."""
    drew: NotRequired[Literal[True]]
    """Scoring drew at random."""
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
    """One for each repeat."""
    key: str
    """Hash over all that the scores depend on beside the answers."""
    crc: Checksum
    """CRC-32 of the line's bytes before the comma of this field."""
    target: NotRequired[Any]
    """Reference answer as text."""
    doc: NotRequired[dict[str, Any]]
    """The document's text fields."""
    doc_hash: NotRequired[str]
    """SHA-256 of the document."""
    media: NotRequired[list[Any]]
    """Up to four pictures of the document."""
    scores: NotRequired[list[PipelineRecord]]
    """One for each filter pipeline."""
    judge: NotRequired[list[JudgeVerdict]]
    """What a judge said."""
    failed: NotRequired[str]
    """Why the document has no scores."""


@with_config(ConfigDict(use_attribute_docstrings=True))
class RunFile(TypedDict):
    """Content of ``run.json``, without the line of its checksum; a process that joined has only the first three."""

    key: str
    """Hash over everything that can change an answer; the folder's name."""
    state: RunState
    """``running`` while it goes on, or where it was killed."""
    date: str
    """First start of the run."""
    stamp: NotRequired[str | None]
    """In the names of the result files."""
    starts: NotRequired[int]
    """How often it was started."""
    arguments: NotRequired[dict[str, Any]]
    """The options, secrets masked."""
    model: NotRequired[dict[str, Any]]
    """Back end and identity of the model."""
    launcher: NotRequired[str]
    """The process that started it, to tell attempts of an elastic launcher."""
    tasks: NotRequired[dict[str, Any]]
    """Metrics of each task, to read its numbers from the journal."""
    early_stops: NotRequired[dict[str, Any]]
    """Tasks that ``--until`` ended."""
    command: NotRequired[str]
    """What asks for the answers that are missing; empty where none are."""
