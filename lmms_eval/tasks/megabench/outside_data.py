"""Data outside of the documents that some metrics need."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OutsideData:
    """The places of such data, as the options of the run name them."""

    geocode_table: str = ""
    """File with the coordinates of places."""
    geocoder: str = ""
    """Server that is asked for coordinates that the table has not."""
    nltk_data: str | None = None
    """Folders with NLTK's data; ``None``: where NLTK itself looks."""


NO_DATA = OutsideData()
"""Nothing is named: there is no geocoder, and NLTK's data is looked for where NLTK does."""
