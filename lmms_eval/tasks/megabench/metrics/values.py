"""Inputs and results of metrics: data outside the documents, and values."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class OutsideData(Struct, frozen=True):
    """The places of data outside the documents that some metrics need, from the options of the run."""

    geocode_table: str = ""
    """File with the coordinates of places."""
    geocoder: str = ""
    """Server for coordinates that the table lacks."""
    nltk_data: str | None = None
    """Folders with NLTK's data; ``None``: NLTK's usual folders."""


NO_DATA = OutsideData()
"""No data: no geocoder, and NLTK's data in its usual folders."""


class DetailedScore(Struct, frozen=True):
    """A score with information for the result file: a text, or a dictionary of JSON values."""

    score: float
    info: Any = None


MetricValue = float | DetailedScore


def unsupported(_response: object, _truth: object) -> float:
    """Return -1, which means "no score". Inside a task such a field has no entry at all."""
    return -1.0


def nli_entailment(_response: object, _truth: object) -> float:
    """Return 0, as the official evaluator does, whose guard lets no text reach its model."""
    return 0.0


def text_of(value: Any, wanted: str = "a text is needed here") -> str:
    """Return a value that is a text. Raises ``TypeError`` for any other value, which scores 0."""
    if not isinstance(value, str):
        raise TypeError(f"{wanted}, not {type(value).__name__}")
    return value
