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


class ResponseFailure(TypedDict):
    """The reason for which a request was given up, after all retries."""

    kind: ErrorKind
    message: str
    attempts: int


@with_config(DESCRIBED)
class ResponseLine(TypedDict):
    """A line of ``responses-RANK.jsonl``: one of ``text``, ``rounds``, ``loglikelihood`` and ``error``."""

    id: str
    """Task, document, repeat, round and number of the request, with slashes."""
    crc: Checksum
    text: NotRequired[str | None]
    parts: NotRequired[list[Any]]
    """Texts, and pictures by hash and media type."""
    rounds: NotRequired[list[Any]]
    loglikelihood: NotRequired[list[Any]]
    """Natural logarithm of the probability, whether it is the greedy answer, whether it is a loss instead."""
    error: NotRequired[ResponseFailure]
    usage: NotRequired[list[int | None]]
    """Input, output and reasoning tokens."""
    finish_reason: NotRequired[str]
    latency: NotRequired[float]
    """Seconds."""
    model: NotRequired[str]
    """That the server says it served."""
    attempts: NotRequired[int]
    batch: NotRequired[list[str]]
    """Ids of the requests that were generated with it."""
    media: NotRequired[list[Medium]]
    messages: NotRequired[list[Message]]
    tool_messages: NotRequired[list[Message]]
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
    """Text, texts of the rounds, or likelihoods of the choices; null where the request failed."""
    input: str
    parts: NotRequired[list[Any]]
    usage: NotRequired[list[list[int | None] | None]]
    """Input, output and reasoning tokens of each request."""
    finish_reason: NotRequired[str]
    latency: NotRequired[float]
    model: NotRequired[str]
    error: NotRequired[str]
    is_loss: NotRequired[Literal[False]]
    """The likelihoods are logarithms of probabilities, not losses."""
    media: NotRequired[list[Medium]]
    messages: NotRequired[list[Message]]
    attempts: NotRequired[int]


@with_config(DESCRIBED)
class PipelineRecord(TypedDict):
    """Scores of a document through one filter pipeline."""

    filter: str
    filtered: Any
    metrics: dict[str, Any]
    status: NotRequired[Literal["unscored"]]
    reason: NotRequired[str]
    per_answer: NotRequired[list[dict[str, Any]]]
    """Metrics of each repeat alone."""
    drew: NotRequired[Literal[True]]
    reading: NotRequired[dict[str, Any]]


@with_config(DESCRIBED)
class ScoreLine(TypedDict):
    """A line of ``scores-RANK.jsonl``: a finished document, with ``scores`` or ``failed``."""

    task: str
    doc_id: int
    answers: list[AnswerRecord]
    key: str
    """Hash over all that the scores depend on beside the answers."""
    crc: Checksum
    target: NotRequired[Any]
    doc: NotRequired[dict[str, Any]]
    doc_hash: NotRequired[str]
    media: NotRequired[list[Any]]
    scores: NotRequired[list[PipelineRecord]]
    judge: NotRequired[list[JudgeVerdict]]
    failed: NotRequired[str]
    """Why the document has no scores."""


@with_config(ConfigDict(use_attribute_docstrings=True))
class RunFile(TypedDict):
    """Content of ``run.json``, without the line of its checksum; a process that joined has only the first three."""

    key: str
    """Hash over everything that can change an answer; the folder's name."""
    state: RunState
    date: str
    stamp: NotRequired[str | None]
    """In the names of the result files."""
    starts: NotRequired[int]
    arguments: NotRequired[dict[str, Any]]
    model: NotRequired[dict[str, Any]]
    launcher: NotRequired[str]
    tasks: NotRequired[dict[str, Any]]
    early_stops: NotRequired[dict[str, Any]]
    command: NotRequired[str]
    """What asks for the answers that are missing; empty where none are."""
