"""A document after scoring: its values through each filter pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lmms_eval.api.outcome import Status
from lmms_eval.utils.answer_reading import NOT_TOLD, AnswerReading


@dataclass(frozen=True, slots=True)
class PipelineScore:
    """One document scored through one filter pipeline: a row of the samples file."""

    filter: str
    filtered: Any
    """The filtered answers: one for each request of the document (see ``filtered_resps`` in ``docs/results.md``)."""
    metrics: Mapping[str, Any]
    """Values by metric name as ``process_results`` gave them, ``Unscored`` values left out."""
    status: Status = "scored"
    reason: str = ""
    per_answer: tuple[Mapping[str, Any], ...] = ()
    """With repeats: the metrics of each answer alone, for the stability metrics."""
    drew: bool = False
    """Scoring drew at random, as a parser does with an answer that names no choice."""
    reading: AnswerReading = NOT_TOLD
    """The rule by which the answer was read, where scoring noted it."""


@dataclass(frozen=True, slots=True)
class ScoredDoc:
    """A document after scoring."""

    target: str
    doc: Mapping[str, Any]
    """The document's text fields (no media)."""
    doc_hash: str
    """SHA-256 of the document as canonical JSON, media by content digest or reference."""
    scores: tuple[PipelineScore, ...]
    media: tuple[str, ...] = ()
    """Paths, URLs or digests of up to 4 pictures in the document."""
