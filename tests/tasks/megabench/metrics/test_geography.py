from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.megabench.geocoding import Coordinates
from lmms_eval.tasks.megabench.metrics.geography import geo_proximity_location_dict, proximity
from lmms_eval.tasks.megabench.metrics.values import OutsideData
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import FUZZ, reply_value

PARIS = {"country": "France", "province_or_state": "IDF", "municipality": "Paris"}
LYON = {"country": "France", "province_or_state": "ARA", "municipality": "Lyon"}
ENTRIES = [
    {"query": {"country": "France", "state": "IDF", "city": "Paris"}, "lat": 48.8566, "lon": 2.3522},
    {"query": {"country": "France", "city": "Lyon"}, "lat": 45.764, "lon": 4.8357},
    {"query": {"country": "France", "state": "x", "city": "Nowhere"}, "lat": None, "lon": None},
    {"query": {"country": "France", "city": "Nowhere"}, "lat": None, "lon": None},
]
points = st.builds(Coordinates, st.floats(-90, 90), st.floats(-180, 180))


@pytest.fixture
def data(tmp_path: Path) -> OutsideData:
    path = tmp_path / "places.json"
    path.write_text(json.dumps({"complete": True, "entries": ENTRIES}))
    return OutsideData(geocode_table=str(path))


def test_scores(data: OutsideData) -> None:
    assert geo_proximity_location_dict(PARIS, PARIS, data) == 1
    assert geo_proximity_location_dict(LYON, PARIS, data) == pytest.approx(math.exp(-3.9171), abs=1e-5)
    assert geo_proximity_location_dict({**PARIS, "municipality": "Nowhere"}, PARIS, data) == 0
    assert geo_proximity_location_dict(PARIS, {**PARIS, "country": "Spain"}, data) == 0


@for_each(
    "response",
    [
        None, "Paris", [], {}, {"country": "France"}, {**PARIS, "note": "x"}, {**PARIS, "country": ""},
        {**PARIS, "country": None}, {**PARIS, "municipality": 5}, {**PARIS, "municipality": ["Paris"]},
        {**PARIS, "municipality": "P" * 10_000}, {**PARIS, "municipality": "  "},
    ],
    ids=str,
)  # fmt: skip
def test_no_place_scores_nothing_and_nobody_is_asked(response: Any) -> None:
    assert geo_proximity_location_dict(response, PARIS, OutsideData(geocoder="http://127.0.0.1:9/refuses")) == 0


def test_a_truth_without_dictionary_raises(data: OutsideData) -> None:
    for truth in ("bad", None):
        with pytest.raises(TypeError):
            geo_proximity_location_dict(PARIS, truth, data)


def test_without_a_geocoder_there_is_no_score(tmp_path: Path) -> None:
    with pytest.raises(NotEvaluated, match="give --geocode_table FILE or --geocoder nominatim"):
        geo_proximity_location_dict(PARIS, PARIS)
    with pytest.raises(NotEvaluated, match=r"absent\.json cannot be read"):
        geo_proximity_location_dict(PARIS, PARIS, OutsideData(geocode_table=str(tmp_path / "absent.json")))


def test_without_geopy_there_is_no_score(data: OutsideData, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "geopy.distance", None)
    with pytest.raises(NotEvaluated, match=r"geopy is missing: install lmms_eval\[metrics\]"):
        geo_proximity_location_dict(PARIS, LYON, data)


@FUZZ
@given(points, points)
def test_proximity_is_near_that_on_a_sphere(first: Coordinates, second: Coordinates) -> None:
    """The ellipsoid differs from the sphere of the same mean radius by less than 0.6 %."""
    value = proximity(first, second)
    assert 0 <= value <= 1
    assert value == pytest.approx(proximity(second, first), rel=1e-9, abs=1e-300)
    assert proximity(first, first) == 1
    a, b = math.radians(first.latitude), math.radians(second.latitude)
    sine = (
        math.sin((a - b) / 2) ** 2
        + math.cos(a) * math.cos(b) * math.sin(math.radians(first.longitude - second.longitude) / 2) ** 2
    )
    kilometres = 2 * 6371.0088 * math.asin(min(1.0, math.sqrt(sine)))
    if value > 1e-100:
        assert -100 * math.log(value) == pytest.approx(kilometres, rel=0.006, abs=1e-3)


@FUZZ
@given(reply_value)
def test_any_reply_scores_within_range(response: Any) -> None:
    assert geo_proximity_location_dict(response, PARIS) == 0  # none of them is a dictionary of the three keys
