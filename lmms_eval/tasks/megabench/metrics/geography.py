"""Nearness of places on the Earth."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError
from lmms_eval.tasks.megabench.geocoding import REMEDY, Coordinates, GeocodeTable, is_askable
from lmms_eval.tasks.megabench.metrics.values import NO_DATA, OutsideData

if TYPE_CHECKING:
    from lmms_eval.tasks.megabench.nominatim import Nominatim

DECAY_KM = 100.0
KEYS = frozenset({"country", "province_or_state", "municipality"})


def geo_proximity_location_dict(response: Any, truth: Any, data: OutsideData = NO_DATA) -> float:
    """exp(-km/100) of two places named by country, province and municipality; 0 for a place that cannot be found.

    Raises:
        NotEvaluated: there is no geocoder, or it gave no answer.
        TypeError: the truth is not a dictionary.
    """
    if not isinstance(response, Mapping) or response.keys() != KEYS:
        return 0.0
    if not isinstance(truth, Mapping):
        raise TypeError(f"the true place is a {type(truth).__name__}, no dictionary")
    if truth.keys() != KEYS or any(place[key] == "" for place in (response, truth) for key in KEYS):
        return 0.0
    geocoder = open_geocoder(data.geocode_table, data.geocoder)
    found = _locate(response, geocoder)
    true = None if found is None else _locate(truth, geocoder)
    return 0.0 if found is None or true is None else proximity(found, true)


def proximity(first: Coordinates, second: Coordinates) -> float:
    """exp(-d/100), d the geodesic distance on the WGS-84 ellipsoid in kilometres (Karney 2013)."""
    try:
        from geopy.distance import geodesic
    except ImportError as error:
        raise NotEvaluated("geopy is missing: install lmms_eval[metrics]") from error
    distance = geodesic((first.latitude, first.longitude), (second.latitude, second.longitude))
    return math.exp(-distance.km / DECAY_KM)


@functools.lru_cache(maxsize=4)
def open_geocoder(table: str = "", server: str = "") -> GeocodeTable | Nominatim:
    """Open the geocoder of a run: ``--geocode_table``, ``--geocoder``, or the table first and then the server.

    Raises ``NotEvaluated`` if there is neither a table nor a server, or the table cannot be read.
    """
    try:
        entries = GeocodeTable.read(Path(table)) if table else None
    except DataError as error:
        raise NotEvaluated(str(error)) from error
    if server:
        from lmms_eval.tasks.megabench.nominatim import AnswerMemory, Nominatim

        return Nominatim(server, AnswerMemory(server), entries)
    if entries is None:
        raise NotEvaluated(f"there is no geocoder: {REMEDY}")
    return entries


def _locate(place: Mapping[str, Any], geocoder: GeocodeTable | Nominatim) -> Coordinates | None:
    """Look up by country, state and city; without a hit by country and city."""
    wide = {"country": place["country"], "city": place["municipality"]}
    queries = ({**wide, "state": place["province_or_state"]}, wide)
    found = (geocoder.locate(query) for query in queries if is_askable(query))
    return next((point for point in found if point is not None), None)
