"""Vectors from files, and what is compared of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from lmms_eval.tasks.general_bench.measures import embeddings
from lmms_eval.tasks.general_bench.measures.contract import Context
from lmms_eval.tasks.general_bench.measures.embeddings import frechet_from_embeddings
from tests.cases import for_each
from tests.tasks.general_bench.networks import kit

ROWS = np.array([[1.0, 0.0], [0.6, 0.8], [-1.0, 0.0]], np.float32)


def test_features_stand_beside_a_prediction(tmp_path: Path) -> None:
    item = kit.item(tmp_path)
    name = kit.array(item.prediction_folder / "a.npy", ROWS)

    found = embeddings.predicted_features({"features": name}, item)

    assert found is not None
    assert found.tolist() == ROWS.tolist()
    assert embeddings.predicted_features({"path": name}, item) is None
    assert embeddings.predicted_features(name, item) is None


def test_one_vector_is_one_row(tmp_path: Path) -> None:
    item = kit.item(tmp_path)
    name = kit.array(item.prediction_folder / "a.npy", [1, 2, 3])

    found = embeddings.predicted_features({"features": name}, item)

    assert found is not None
    assert found.tolist() == [[1, 2, 3]]


@for_each(
    "rows",
    [
        np.zeros((2, 2, 2)),
        np.zeros((0, 3)),
        np.zeros((2, 9000)),
        np.array([[1.0, np.nan]]),
        np.array([[1e300, 1.0]]),
        np.array(["a", "b"]),
        np.zeros((embeddings.MAX_ROWS + 1, 1)),
    ],
)
def test_other_arrays_are_unreadable(tmp_path: Path, rows: Any) -> None:
    item = kit.item(tmp_path)
    name = kit.array(item.prediction_folder / "a.npy", rows)

    with pytest.raises(UnreadableAnswer, match="the prediction cannot be used"):
        embeddings.predicted_features({"features": name}, item)


@for_each("value", ["nothing.npy", "/dev/zero", 3, None, ["a.npy"], {"a": 1}])
def test_other_values_are_unreadable(tmp_path: Path, value: Any) -> None:
    with pytest.raises(UnreadableAnswer):
        embeddings.predicted_features({"features": value}, kit.item(tmp_path))


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "sprung",)

    item = kit.item(tmp_path)
    np.save(item.prediction_folder / "a.npy", np.array([Trap()], dtype=object), allow_pickle=True)

    with pytest.raises(UnreadableAnswer):
        embeddings.predicted_features({"features": "a.npy"}, item)
    assert not (tmp_path / "sprung").exists()


def test_features_of_references_lie_by_task_and_item(tmp_path: Path) -> None:
    item = kit.item(tmp_path)
    kit.array(tmp_path / "given" / "data" / "7.npy", ROWS)
    context = Context(options={"reference_features": tmp_path / "given"})

    found = embeddings.reference_features(item, context)

    assert found is not None
    assert found.tolist() == ROWS.tolist()
    assert embeddings.reference_features(kit.item(tmp_path, id=8), context) is None
    assert embeddings.reference_features(item, Context()) is None


@for_each("name", ["../7", "a/b", "..", "", "a\\b", "x" * 201])
def test_ids_that_name_no_file_are_refused(tmp_path: Path, name: str) -> None:
    context = Context(options={"reference_features": str(tmp_path)})

    with pytest.raises(DataError, match="can name no file"):
        embeddings.reference_features(kit.item(tmp_path, id=name), context)


def test_cosines_are_of_all_pairs(tmp_path: Path) -> None:
    item = kit.item(tmp_path)
    other = np.array([[0.0, 2.0], [0.0, 0.0]], np.float32)

    found = embeddings.cosines(ROWS, other, item)

    assert found == pytest.approx(np.array([[0, 0], [0.8, 0], [0, 0]]), abs=1e-7)
    assert embeddings.similarity(ROWS, other[:1], item) == pytest.approx(100 * 0.8 / 3)
    with pytest.raises(UnreadableAnswer, match="2 and 3 dimensions"):
        embeddings.cosines(ROWS, np.ones((1, 3), np.float32), item)


def test_consistency_is_by_the_previous_and_the_first_frame(tmp_path: Path) -> None:
    """Cosines to the previous frame: 0.6, then -0.6 (counts 0); to the first: 0.6, then -1 (counts 0)."""
    total, count = embeddings.consistency(ROWS, kit.item(tmp_path))

    assert total == pytest.approx(0.6)
    assert count == 2
    with pytest.raises(UnreadableAnswer, match="at least 2 frames"):
        embeddings.consistency(ROWS[:1], kit.item(tmp_path))


def test_sums_are_pooled() -> None:
    assert embeddings.pooled_percent([[1.0, 2], [0.5, 1], [0.0, 0]]) == 50
    assert embeddings.pooled_percent([[0.0, 0]]) == 0


def test_states_tell_any_two_float32_apart() -> None:
    rows = np.random.default_rng(1).standard_normal(1000).astype(np.float32)

    state = embeddings.as_state(rows)

    assert np.array_equal(np.array(state, np.float32), rows)
    assert all(isinstance(value, float) and math.isfinite(value) for value in state)


def test_frechet_is_that_of_both_sets() -> None:
    source = np.random.default_rng(2)
    first, second = source.standard_normal((5, 3)), source.standard_normal((5, 3)) + 1

    found = embeddings.frechet([[a.tolist(), b.tolist()] for a, b in zip(first, second, strict=True)])

    assert found == pytest.approx(frechet_from_embeddings(first, second))
    with pytest.raises(DataError, match="different lengths"):
        embeddings.frechet([[[1.0, 2.0], [1.0, 2.0]], [[1.0, 2.0], [1.0]]])
    with pytest.raises(DataError, match="at least 2 embeddings"):
        embeddings.frechet([[[1.0, 2.0], [1.0, 2.0]]])


def test_a_pair_is_one_vector_of_each_side_and_of_one_length(tmp_path: Path) -> None:
    item = kit.item(tmp_path)

    assert embeddings.pair_state(ROWS[:1], ROWS[1:2], item) == [[1.0, 0.0], [0.600000024, 0.800000012]]
    with pytest.raises(UnreadableAnswer, match="2 and 3 dimensions"):
        embeddings.pair_state(ROWS[:1], np.ones((1, 3), np.float32), item)
    with pytest.raises(UnreadableAnswer, match="one vector"):
        embeddings.pair_state(ROWS, ROWS[:1], item)
    with pytest.raises(DataError, match="reference"):
        embeddings.pair_state(ROWS[:1], ROWS, item)
