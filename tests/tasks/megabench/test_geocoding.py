from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError
from lmms_eval.tasks.megabench.geocoding import (
    Coordinates,
    GeocodeTable,
    geocoder_identity,
)
from lmms_eval.tasks.megabench.metrics.geography import open_geocoder
from lmms_eval.tasks.megabench.nominatim import Nominatim
from tests.cases import for_each

PARIS = {"query": {"country": "France", "city": "Paris"}, "lat": 48.8566, "lon": "2.3522"}
NOWHERE = {"query": {"country": "France", "city": "Nowhere"}, "lat": None, "lon": None}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([PARIS, NOWHERE], indent=1),
        f"{json.dumps(PARIS)}\n\n{json.dumps(NOWHERE)}\n",
        json.dumps({"entries": [PARIS, NOWHERE]}),
    ],
    ids=["list", "lines", "object"],
)
def test_forms_of_a_table(tmp_path: Path, text: str) -> None:
    path = tmp_path / "places.json"
    path.write_text(text)
    table = GeocodeTable.read(path)
    assert table.locate({"city": "Paris", "country": "France"}) == Coordinates(48.8566, 2.3522)
    assert table.locate(NOWHERE["query"]) is None  # type: ignore[arg-type]
    with pytest.raises(NotEvaluated, match=r"has no \{.*Lyon.*--geocoder nominatim"):
        table.locate({"country": "France", "city": "Lyon"})


def test_one_line_is_a_table(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text(json.dumps(PARIS))
    assert len(GeocodeTable.read(tmp_path / "one.jsonl").entries) == 1


def test_a_complete_table_knows_every_place() -> None:
    table = GeocodeTable.from_entries([PARIS], complete=True)
    assert table.locate({"country": "France", "city": "Lyon"}) is None
    assert table.locate({"country": "France", "city": "paris"}) is None
    assert table.locate({"country": "France", "city": "Paris", "state": "x"}) is None


@for_each(
    ("text", "message"),
    [
        ("{", "no 'query'|Expecting|property name"),
        ('[{"query": {}, "lat": 1}]', "no 'lon'"),
        ('[{"query": {}, "lat": 91, "lon": 0}]', "no point on the Earth"),
        ('[{"query": {}, "lat": NaN, "lon": 0}]', "no point on the Earth"),
        ('[{"query": {}, "lat": "north", "lon": 0}]', "could not convert"),
        ('[{"query": "Paris", "lat": 1, "lon": 0}]', "dictionary"),
        ("[5]", "not subscriptable"),
        ("[" * 100_000, "recursion|Expecting"),
    ],
)
def test_unusable_tables(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "places.json"
    path.write_text(text)
    with pytest.raises(DataError, match=rf"--geocode_table: .*places\.json: .*({message})"):
        GeocodeTable.read(path)


def test_identity(tmp_path: Path) -> None:
    seen: set[Any] = {geocoder_identity()}
    assert seen == {""}
    path = tmp_path / "places.json"
    for entries in ([PARIS], [PARIS, NOWHERE]):
        path.write_text(json.dumps(entries))
        seen.add(geocoder_identity(str(path)))
    seen.add(geocoder_identity(str(path), "nominatim"))
    assert len(seen) == 4
    (tmp_path / "copy.json").write_text(path.read_text())
    assert geocoder_identity(str(tmp_path / "copy.json"), "nominatim") in seen
    path.write_text("[5]")
    with pytest.raises(DataError):
        geocoder_identity(str(path))


def test_the_options_choose_the_geocoder(tmp_path: Path) -> None:
    path = tmp_path / "places.json"
    path.write_text(json.dumps([PARIS]))
    assert isinstance(open_geocoder(str(path)), GeocodeTable)
    chain = open_geocoder(str(path), "http://127.0.0.1:9")
    assert isinstance(chain, Nominatim) and chain.table is not None
