from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from lmms_eval.tasks.general_bench.readers.pictures import ignored_classes, label_map, label_pair, option
from lmms_eval.tasks.general_bench.readers.sides import prediction_of
from tests.cases import for_each
from tests.tasks.general_bench.measures.region_items import item, write_png

LABELS = np.array([[0, 1, 2], [200, 2, 0]])


def test_pictures_and_arrays_hold_the_same_classes(tmp_path: Path):
    write_png(tmp_path / "grey.png", LABELS.astype(np.uint8))
    write_png(tmp_path / "sixteen.png", LABELS.astype(np.uint16))
    write_png(tmp_path / "colourless.png", np.stack([LABELS] * 3, axis=2).astype(np.uint8))
    palette = Image.new("P", (3, 2))
    palette.putdata(LABELS.ravel().tolist())
    palette.putpalette([128, 0, 0] * 256)
    palette.save(tmp_path / "palette.png")
    np.save(tmp_path / "eight.npy", LABELS.astype(np.uint8))
    np.save(tmp_path / "big.npy", LABELS.astype(">i8")[None, ..., None])
    np.save(tmp_path / "unsigned.npy", LABELS.astype(np.uint64))
    for file in tmp_path.iterdir():
        assert np.array_equal(label_map(file.name, prediction_of(item(None, tmp_path))), LABELS), file.name


@for_each("value", [np.array([70_000]), np.array([2**63], np.uint64), np.array([0.5]), np.array(["a"])])
def test_what_are_no_classes_is_refused(value: np.ndarray, tmp_path: Path):
    np.save(tmp_path / "labels.npy", value)
    with pytest.raises(UnreadableAnswer):
        label_map("labels.npy", prediction_of(item(None, tmp_path)))


def test_colours_and_lossy_pictures_are_refused(tmp_path: Path):
    Image.new("RGB", (3, 2), (9, 1, 4)).save(tmp_path / "colours.png")
    Image.new("L", (3, 2), 9).save(tmp_path / "lossy.jpg")
    for name in ("colours.png", "lossy.jpg"):
        with pytest.raises(UnreadableAnswer):
            label_map(name, prediction_of(item(None, tmp_path)))


def test_pairs_without_the_unlabelled(tmp_path: Path):
    np.save(tmp_path / "truth.npy", np.array([-5, 255, 7, 8]))
    np.save(tmp_path / "found.npy", np.array([1, 1, -1, 8]))
    predicted, truth = label_pair("found.npy", item("truth.npy", tmp_path, ignore=[255]))
    assert truth.tolist() == [7, 8]
    assert predicted.tolist() == [65_536, 8]


def test_too_many_classes(tmp_path: Path):
    np.save(tmp_path / "found.npy", np.arange(5000))
    np.save(tmp_path / "truth.npy", np.zeros(5000, int))
    with pytest.raises(UnreadableAnswer, match="4096"):
        label_pair("found.npy", item("truth.npy", tmp_path))


def test_options_of_item_and_head():
    one = item(None, ignore=3)
    assert option(one, "ignore") == 3
    assert option(one, "parts") is None
    assert ignored_classes(one) == [3]
    assert ignored_classes(item(None)) == []
    with pytest.raises(DataError, match="ignore"):
        ignored_classes(item(None, ignore=[1.5]))
