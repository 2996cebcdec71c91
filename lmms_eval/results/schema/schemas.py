"""JSON Schemas of a run's files, made from their types. The schemas of this version are in ``lmms_eval/schemas``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, NotRequired

from pydantic import TypeAdapter, with_config
from typing_extensions import TypedDict

from lmms_eval.results.schema.conversation import OPEN, JudgeVerdict, Medium, Message
from lmms_eval.results.schema.document import ResultsDocument
from lmms_eval.results.schema.journal import JudgementLine, ResponseLine, RunFile, ScoreLine


@with_config(OPEN)
class TokenCounts(TypedDict):
    """Tokens of one request; null if the back end does not report them."""

    input_tokens: int | None
    """Tokens of the prompt."""
    output_tokens: int | None
    """Tokens of the answer."""
    reasoning_tokens: int | None
    """Tokens of its reasoning."""


@with_config(OPEN)
class Repeat(TypedDict):
    """One of several answers to a document."""

    token_counts: list[TokenCounts | None]
    """Tokens of each request."""
    metrics: NotRequired[dict[str, Any]]
    """Metrics of this answer alone."""


@with_config(OPEN)
class SampleLine(TypedDict):
    """A line of ``STAMP_samples_TASK.jsonl``: a document through a filter pipeline, with a further key per metric."""

    doc_id: int
    """Number of the document in its split."""
    status: Literal["scored", "unscored", "failed"]
    """Outcome of the document."""
    request_id: str
    """Id of the document in the journal: ``TASK/DOC_ID``."""
    input: str
    """First text argument of the request."""
    target: NotRequired[Any]
    """Reference answer, as text; absent if the request failed."""
    doc_hash: NotRequired[str]
    """SHA-256 of the document."""
    filter: NotRequired[str]
    """Name of the filter pipeline."""
    filtered_resps: NotRequired[Any]
    """The filtered answer, without reasoning tags; a list if the document has several requests."""
    resps: NotRequired[Any]
    """The raw answer, if it differs from ``filtered_resps``."""
    raw_resps: NotRequired[list[Any]]
    """All raw answers, if a filter changed them or there are several."""
    parts: NotRequired[list[Any]]
    """Texts and pictures of an interleaved answer, in order; a list for each answer or round if there are several."""
    token_counts: NotRequired[list[TokenCounts | None]]
    """Tokens of each request."""
    repeats: NotRequired[list[Repeat]]
    """With ``--repeats``: tokens and metrics of each answer."""
    input_media: NotRequired[list[Any]]
    """Up to four pictures of the document."""
    sent_media: NotRequired[list[Medium]]
    """Media sent to the model, each once, in order."""
    messages: NotRequired[list[Message] | list[list[Message]]]
    """The conversation as it was sent; one for each answer if they differ."""
    reason: NotRequired[str]
    """Why the document is unscored."""
    error: NotRequired[str]
    """Why the document failed."""
    drew: NotRequired[Literal[True]]
    """Scoring drew a choice at random."""
    answer_reading: NotRequired[dict[str, Any]]
    """The ``rule`` that read the answer, and what it found."""
    judge: NotRequired[list[JudgeVerdict]]
    """The judge's reply to each question about the document."""
    thoughts: NotRequired[str | list[str | None] | list[list[str | None] | str | None] | None]
    """The model's thoughts before its answer; a list for several answers, with a list for several rounds."""
    blank: NotRequired[str | list[str | None]]
    """Why the answer is empty: ``blank``, ``truncated in thought``, ``unclosed thought`` or ``only thoughts``."""
    finish_reason: NotRequired[str | list[str | None] | None]
    """How generation ended; a list for several answers."""
    elapsed: NotRequired[float | list[float | None] | None]
    """Seconds."""
    attempts: NotRequired[int | list[int]]
    """How often the request was sent, if more than once."""
    doc: NotRequired[dict[str, Any]]
    """The document's text fields."""


FOLDER = Path(__file__).parents[2] / "schemas"
TYPES: dict[str, Any] = {
    "results": ResultsDocument,
    "sample": SampleLine,
    "response": ResponseLine,
    "score": ScoreLine,
    "judgement": JudgementLine,
    "run": RunFile,
}
"""Type of the file, by the name of its schema."""
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_text(name: str) -> str:
    """Return the JSON Schema of one kind of file."""
    schema = {"$schema": _DIALECT, **TypeAdapter(TYPES[name]).json_schema()}
    return json.dumps(schema, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def schema_file(name: str) -> Path:
    """Return the path of the schema that this version ships."""
    return FOLDER / f"{name}.schema.json"
