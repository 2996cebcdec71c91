from __future__ import annotations

import enum
import math
from datetime import UTC, datetime
from uuid import uuid4

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.storage import codec
from tests.cases import for_each

texts = st.text(st.characters(exclude_categories=["Cs"]))
leaves = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | texts | st.binary()
plain = st.recursive(
    leaves,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(texts | st.integers(), inner),
    max_leaves=20,
)


@given(plain)
def test_what_is_written_is_read_back(value: object) -> None:
    line = codec.dumps(value)
    assert b"\n" not in line
    assert codec.loads(line) == value


def test_types_are_kept() -> None:
    value = {"t": (1, [2, (3,)]), "s": {1, 2}, "inf": -math.inf, "b": b"\x00\xff", 3: "int key", "__tuple__": [1]}
    assert codec.loads(codec.dumps(value)) == value
    assert math.isnan(codec.loads(codec.dumps(math.nan)))


def test_numpy_and_subclasses_become_plain() -> None:
    import numpy as np

    class Colour(enum.StrEnum):
        RED = "red"

    assert codec.loads(codec.dumps([np.float64(0.5), np.int64(3), np.array([1, 2]), Colour.RED])) == [
        0.5,
        3,
        [1, 2],
        "red",
    ]


@given(plain)
def test_a_line_does_not_depend_on_the_way_it_is_written(value: object) -> None:
    assert codec.dumps(value) == orjson.dumps(codec.encode(value))


@given(plain)
def test_plain_json_is_given_for_what_loses_nothing(value: object) -> None:
    line = codec.plain_json(value)
    assert line is None or orjson.loads(line) == value == codec.encode(orjson.loads(line))


@for_each("value", [math.nan, (1, 2), {1}, b"x", {3: 4}, 2**64, "\ud83d", datetime.now(UTC), uuid4()])
def test_what_json_would_change_is_not_plain(value: object) -> None:
    assert codec.plain_json({"kept": 1, "value": [value]}) is None


def test_a_record_of_plain_values_is_not_walked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"id": "task/1", "answers": [{"value": "é", "usage": [1, 2, None]}], "score": 0.5}
    monkeypatch.setattr(codec, "encode", None)
    monkeypatch.setattr(codec, "decode", None)
    assert codec.loads(codec.dumps(record)) == record


def test_a_lone_surrogate_does_not_lose_the_record() -> None:
    assert codec.loads(codec.dumps({"text": "cut \ud83d"}))["text"].startswith("cut ")


def test_other_objects_are_refused() -> None:
    with pytest.raises(codec.VolatileValue, match="object cannot be written"):
        codec.dumps({"x": object()})
