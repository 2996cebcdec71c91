from __future__ import annotations

import enum
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.storage import codec

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


def test_a_lone_surrogate_does_not_lose_the_record() -> None:
    assert codec.loads(codec.dumps({"text": "cut \ud83d"}))["text"].startswith("cut ")


def test_other_objects_are_refused() -> None:
    with pytest.raises(codec.VolatileValue, match="object cannot be written"):
        codec.dumps({"x": object()})
