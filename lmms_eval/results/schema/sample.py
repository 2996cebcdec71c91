"""Type of a line of a samples file."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from lmms_eval.results.schema.conversation import OPEN, JudgeVerdict, Medium, Message


@with_config(OPEN)
class TokenCounts(TypedDict):
    """Tokens of one request; null where the back end does not tell."""

    input_tokens: int | None
    """Of the prompt."""
    output_tokens: int | None
    """Of the answer."""
    reasoning_tokens: int | None
    """Of its reasoning."""


@with_config(OPEN)
class Repeat(TypedDict):
    """One of several answers to a document."""

    token_counts: list[TokenCounts | None]
    """One for each request."""
    metrics: NotRequired[dict[str, Any]]
    """Of this answer alone."""


@with_config(OPEN)
class SampleLine(TypedDict):
    """A line of ``STAMP_samples_TASK.jsonl``: a document and a filter pipeline; one further key for each metric."""

    doc_id: int
    """Number of the document in its split."""
    status: Literal["scored", "unscored", "failed"]
    """What became of it."""
    request_id: str
    """The document in the journal: ``TASK/DOC_ID``."""
    input: str
    """First text argument of the request."""
    target: NotRequired[Any]
    """Reference answer as text; absent where the request failed."""
    doc_hash: NotRequired[str]
    """SHA-256 of the document."""
    filter: NotRequired[str]
    """Name of the filter pipeline."""
    filtered_resps: NotRequired[Any]
    """The answer after filters and reasoning tags; a list if the document has several requests."""
    resps: NotRequired[Any]
    """The raw answer, where it differs from ``filtered_resps``."""
    raw_resps: NotRequired[list[Any]]
    """All raw answers, where a filter changed them or there are several."""
    parts: NotRequired[list[Any]]
    """Texts and pictures of an interleaved answer in order; of several answers or rounds a list for each."""
    token_counts: NotRequired[list[TokenCounts | None]]
    """One for each request."""
    repeats: NotRequired[list[Repeat]]
    """With ``--repeats``: each answer's tokens and metrics."""
    input_media: NotRequired[list[Any]]
    """Up to four pictures of the document."""
    sent_media: NotRequired[list[Medium]]
    """What went to the model, each medium once and in order."""
    messages: NotRequired[list[Message] | list[list[Message]]]
    """The conversation as it went out, of several answers that differ in it one for each."""
    reason: NotRequired[str]
    """Why it is unscored."""
    error: NotRequired[str]
    """Why it failed."""
    drew: NotRequired[Literal[True]]
    """Scoring drew at random."""
    answer_reading: NotRequired[dict[str, Any]]
    """The ``rule`` by which the answer was read, and what it found."""
    judge: NotRequired[list[JudgeVerdict]]
    """What a judge said to each question about it."""
    thoughts: NotRequired[str | list[str | None] | list[list[str | None] | str | None] | None]
    """What the model thought before its answer; of several answers a list, of several rounds a list of each."""
    blank: NotRequired[str | list[str | None]]
    """Why the answer says nothing: ``blank``, ``truncated in thought``, ``unclosed thought`` or ``only thoughts``."""
    finish_reason: NotRequired[str | list[str | None] | None]
    """How generation ended; of several answers a list."""
    elapsed: NotRequired[float | list[float | None] | None]
    """Seconds."""
    attempts: NotRequired[int | list[int]]
    """How often the request was sent, where that is more than once."""
    doc: NotRequired[dict[str, Any]]
    """The document's text fields."""
