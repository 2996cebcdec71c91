from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from lmms_eval.tasks.general_bench.measures.mask_math import as_pixels
from lmms_eval.tasks.general_bench.readers.regions import instances
from lmms_eval.tasks.general_bench.readers.sides import prediction_of, reference_of
from tests.cases import for_each
from tests.tasks.general_bench.measures.region_items import counts_of, item

PREDICTED = prediction_of(item(None))
MASK = np.eye(4, dtype=bool)


def test_maps_with_listed_segments(tmp_path: Path):
    colours = np.zeros((2, 4, 3), np.uint8)
    colours[:, 2:] = [44, 1, 0]
    colours[:, :1] = [5, 0, 1]
    Image.fromarray(colours).save(tmp_path / "map.png")
    given_map = {"map": "map.png", "segments": [{"id": 300, "label": "Sky"}, {"id": 65541, "label": "car"}]}
    side = prediction_of(item(None, tmp_path))
    found = instances(given_map, side)
    assert found.marked.labels == ("sky", "car")
    assert np.array_equal(as_pixels(found.regions[0]), colours[..., 0] == 44)
    assert found.void is not None and found.void.area == 2
    with pytest.raises(UnreadableAnswer, match="no label for the segment 65541"):
        instances({**given_map, "segments": given_map["segments"][:1]}, side)


@given(arrays(np.int64, (1, 9), elements=st.sampled_from([0, 3, 1001, 1002, 2001])))
def test_maps_are_split_by_id(tmp_path_factory: pytest.TempPathFactory, ids: np.ndarray):
    folder = tmp_path_factory.mktemp("ids")
    np.save(folder / "ids.npy", ids[0])
    found = instances("ids.npy", prediction_of(item(None, folder)))
    known = [number for number in np.unique(ids) if number]
    assert [as_pixels(region).tolist() for region in found.regions] == [(ids == number).tolist() for number in known]
    expected = tuple(str(number // 1000 if number >= 1000 else number) for number in known)
    assert (found.marked.labels or ()) == expected


def test_masks_take_the_size_of_the_reference():
    truth = instances([{"mask": counts_of(MASK)}], reference_of(item(None)))
    assert truth.size == (4, 4)
    found = instances([{"box": [0, 0, 2, 2]}, {"mask": [[0, 0, 3, 0, 3, 3, 0, 3]], "score": 0.5}], PREDICTED, truth)
    assert [region.area for region in found.regions] == [4, 16]
    assert found.marked.scores.tolist() == [1.0, 0.5]
    with pytest.raises(UnreadableAnswer, match="without the size"):
        instances([{"box": [0, 0, 2, 2]}], PREDICTED)


def test_indices_from_lists_and_files(tmp_path: Path):
    np.save(tmp_path / "points.npy", np.array([3, 1, 2], np.uint16))
    found = instances([{"indices": "points.npy"}, {"indices": [1, 1, 9]}], prediction_of(item(None, tmp_path)))
    assert [(region.starts.tolist(), region.ends.tolist()) for region in found.regions] == [
        ([1], [4]),
        ([1, 9], [2, 10]),
    ]
    assert found.size is None


@for_each(
    "value",
    [None, 3, [3], [{}], [{"indices": [-1]}], [{"indices": [10**30]}], [{"indices": [True]}], [{"indices": {}}],
     [{"mask": None}], [{"box": [1, 2, 3, -4]}], {"segments": []}, {"map": "missing.png", "segments": [3]},
     [{"indices": [1], "label": "a"}, {"indices": [2]}], [{"indices": [1], "score": "high"}]],
    ids=str,
)  # fmt: skip
def test_what_are_no_instances_is_refused(value: Any):
    with pytest.raises(UnreadableAnswer):
        instances(value, PREDICTED)


def test_long_answers_end_fast():
    truth = instances([{"indices": list(range(0, 100_000, 2))}], reference_of(item(None)))
    begin = time.monotonic()
    with pytest.raises(UnreadableAnswer, match="at most 1000"):
        instances([{"indices": [1]}] * 1_000_000, PREDICTED, truth)
    with pytest.raises(UnreadableAnswer, match="lists 100000000 indices"):
        instances([{"indices": list(range(0, 200_000, 2))}] * 1000, PREDICTED, truth)
    assert time.monotonic() - begin < 30
