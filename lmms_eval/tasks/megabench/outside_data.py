"""Data outside the documents that some metrics need."""

from __future__ import annotations

from msgspec import Struct


class OutsideData(Struct, frozen=True):
    """The places of such data from the options of the run."""

    geocode_table: str = ""
    """File with the coordinates of places."""
    geocoder: str = ""
    """Server for coordinates that the table lacks."""
    nltk_data: str | None = None
    """Folders with NLTK's data; ``None``: NLTK's usual folders."""


NO_DATA = OutsideData()
"""No data: no geocoder, and NLTK's data in its usual folders."""
