"""Coordinates of named places from a table on disk, a cache of earlier answers, or a chosen server.

A geocoder returns coordinates, or ``None`` for an unknown place, or raises ``NotEvaluated`` if it has
no answer: a missing answer is never counted as a wrong place.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError
from lmms_eval.utils.files import read_plain, read_plain_text

Query = Mapping[str, Any]
"""``country``, ``city`` and perhaps ``state``, from a reply or the truth."""
REMEDY = "give --geocode_table FILE or --geocoder nominatim"
MAX_NAME_CHARS = 200
"""Longest name of a place; longer ones are not looked up."""


class Coordinates(Struct, frozen=True):
    """A point on the Earth, in degrees."""

    latitude: float
    longitude: float


def is_askable(query: Query) -> bool:
    """Return whether all values are names of acceptable length; other values of a reply name no place."""
    return all(isinstance(name, str) and 0 < len(name.strip()) <= MAX_NAME_CHARS for name in query.values())


def query_key(query: Query) -> str:
    """Return the same text for equal queries."""
    return json.dumps(query, ensure_ascii=False, sort_keys=True, default=str)


def coordinates(latitude: Any, longitude: Any) -> Coordinates:
    """Read two numbers, or texts of numbers. Raises ``ValueError`` or ``TypeError`` for anything else."""
    point = Coordinates(float(latitude), float(longitude))
    if not (math.isfinite(point.longitude) and abs(point.latitude) <= 90):
        raise ValueError(f"({latitude}, {longitude}) is no point on the Earth")
    return point


class GeocodeTable(Struct, frozen=True):
    """Answers by query. A ``complete`` table holds every place; others do not exist."""

    entries: Mapping[str, Coordinates | None]
    complete: bool = False

    @classmethod
    def from_entries(cls, entries: Iterable[Mapping[str, Any]], *, complete: bool = False) -> GeocodeTable:
        """Make a table of entries ``{"query": {...}, "lat": 48.9, "lon": 2.35}``; ``null`` if a place does not exist.

        Raises ``KeyError``, ``TypeError`` or ``ValueError`` for an entry of another form.
        """
        table = {}
        for entry in entries:
            is_nowhere = entry["lat"] is None and entry["lon"] is None
            table[query_key(dict(entry["query"]))] = None if is_nowhere else coordinates(entry["lat"], entry["lon"])
        return cls(MappingProxyType(table), complete)

    @classmethod
    def read(cls, path: Path) -> GeocodeTable:
        """Read a JSON list of entries, JSON lines, or ``{"complete": true, "entries": [...]}``.

        Raises ``DataError`` if the file cannot be read or has another form.
        """
        try:
            text = read_plain_text(path)
            try:
                document: Any = json.loads(text)
            except json.JSONDecodeError:
                document = [json.loads(line) for line in text.splitlines() if line.strip()]
            if isinstance(document, Mapping) and "entries" in document:
                return cls.from_entries(document["entries"], complete=bool(document.get("complete", False)))
            return cls.from_entries(document if isinstance(document, list) else [document])
        except OSError as error:
            raise DataError(f"--geocode_table: {path} cannot be read: {error}") from error
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            what = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise DataError(
                f'--geocode_table: {path}: {what}; an entry is {{"query": {{"country": ..., "city": ...}}, "lat": ..., '
                '"lon": ...}'
            ) from error

    def find(self, query: Query) -> Coordinates | None:
        """Return the answer, ``None`` if the place does not exist. Raises ``KeyError`` if the table has no answer."""
        key = query_key(query)
        return self.entries.get(key) if self.complete else self.entries[key]

    def locate(self, query: Query) -> Coordinates | None:
        """Return a place's coordinates; ``None`` if it does not exist. Raises ``NotEvaluated`` without an answer."""
        try:
            return self.find(query)
        except KeyError as absent:
            raise NotEvaluated(
                f"the geocoding table has no {query_key(query):.120}: add it, or give --geocoder nominatim"
            ) from absent


def geocoder_identity(table: str = "", server: str = "") -> str:
    """Return what the answers depend on: the content of the table and the server's name.

    Raises ``DataError`` if the table cannot be read; reported before the run instead of after it.
    """
    content = ""
    if table:
        GeocodeTable.read(Path(table))
        content = hashlib.sha256(read_plain(Path(table))).hexdigest()
    return f"{content} {server}".strip()
