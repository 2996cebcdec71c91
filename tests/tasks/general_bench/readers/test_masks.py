from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from PIL import Image, ImageDraw

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from lmms_eval.tasks.general_bench.measures.mask_math import as_pixels, runs_of
from lmms_eval.tasks.general_bench.readers.regions import counts_of_text, mask, video_masks
from lmms_eval.tasks.general_bench.readers.sides import Side, prediction_of, reference_of
from tests.cases import for_each
from tests.tasks.general_bench.measures.region_items import counts_of, item, write_png

MASKS = arrays(bool, array_shapes(min_dims=2, max_dims=2, max_side=12))


def predicted(folder: Path = Path("nowhere")) -> Side:
    return prediction_of(item(None, folder))


@given(MASKS)
def test_run_lengths_give_the_mask_back(pixels: np.ndarray):
    assert np.array_equal(as_pixels(mask(counts_of(pixels), predicted())), pixels)
    assert np.array_equal(as_pixels(runs_of(pixels)), pixels)


def test_runs_that_touch_are_one():
    found = mask({"size": [3, 2], "counts": [0, 2, 0, 2, 1, 0, 1]}, predicted())
    assert (found.starts.tolist(), found.ends.tolist()) == ([0], [4])
    assert found.area == 4


@given(MASKS)
def test_texts_agree_with_cocos_own_tool(pixels: np.ndarray):
    tool = pytest.importorskip("pycocotools.mask")
    text = tool.encode(np.asfortranarray(pixels.astype(np.uint8)))["counts"].decode()
    assert counts_of_text(text).tolist() == counts_of(pixels)["counts"]
    assert np.array_equal(as_pixels(mask({"size": list(pixels.shape), "counts": text}, predicted())), pixels)


@pytest.mark.parametrize("seed", range(4))
def test_long_runs_in_texts_agree_with_cocos_own_tool(seed: int):
    tool = pytest.importorskip("pycocotools.mask")
    draw = np.random.default_rng(seed)
    pixels = np.zeros((700, 900), dtype=bool)
    for _ in range(4):
        row, column = draw.integers(0, 600, 2)
        pixels[row : row + draw.integers(1, 300), column : column + draw.integers(1, 300)] ^= True
    text = tool.encode(np.asfortranarray(pixels.astype(np.uint8)))["counts"].decode()
    assert np.array_equal(as_pixels(mask({"size": [700, 900], "counts": text}, predicted())), pixels)


def test_pictures_of_any_mode_hold_the_same_mask(tmp_path: Path):
    pixels = np.zeros((5, 7), dtype=bool)
    pixels[1:3, 2:6] = True
    palette = Image.new("P", (7, 5))
    palette.putdata(pixels.astype(np.uint8).ravel().tolist())
    palette.putpalette([0, 0, 0, 128, 0, 0])
    palette.save(tmp_path / "palette.png")
    write_png(tmp_path / "grey.png", pixels.astype(np.uint8) * 255)
    write_png(tmp_path / "one.png", pixels.astype(np.uint8))
    write_png(tmp_path / "sixteen.png", pixels.astype(np.uint16) * 300)
    write_png(tmp_path / "colour.png", np.stack([pixels * 0, pixels * 200, pixels * 3], axis=2).astype(np.uint8))
    Image.fromarray(pixels).save(tmp_path / "bits.png")
    Image.fromarray(pixels.astype(np.uint8) * 255).save(tmp_path / "lossy.jpg", quality=100)
    np.save(tmp_path / "array.npy", pixels)
    for file in tmp_path.iterdir():
        assert np.array_equal(as_pixels(mask(file.name, predicted(tmp_path))), pixels), file.name


def test_points_of_a_cloud(tmp_path: Path):
    np.save(tmp_path / "points.npy", np.array([0, 2, 1, 0, 1]))
    found = mask("points.npy", predicted(tmp_path))
    assert (found.size, found.starts.tolist(), found.ends.tolist()) == ((1, 5), [1, 4], [3, 5])
    with pytest.raises(UnreadableAnswer, match="5 x 1 pixels where 6 x 1"):
        mask("points.npy", predicted(tmp_path), (1, 6))


def test_polygons_are_filled():
    pixels = as_pixels(mask([[1, 1, 4, 1, 4, 3, 1, 3]], predicted(), (6, 8)))
    expected = np.zeros((6, 8), dtype=bool)
    expected[1:4, 1:5] = True
    assert np.array_equal(pixels, expected)
    same = mask({"size": [6, 8], "polygons": [[1, 1, 4, 1, 4, 3, 1, 3]]}, reference_of(item(None)))
    assert np.array_equal(as_pixels(same), expected)


def test_other_sizes_are_named():
    with pytest.raises(UnreadableAnswer, match="4 x 3 pixels where 5 x 6"):
        mask({"size": [3, 4], "counts": [12]}, predicted(), (6, 5))


def test_other_sizes_of_pictures_are_named(tmp_path: Path):
    name = write_png(tmp_path / "mask.png", np.zeros((3, 4), np.uint8))
    with pytest.raises(UnreadableAnswer, match="4 x 3 pixels where 5 x 6"):
        mask(name, predicted(tmp_path), (6, 5))


HOSTILE: list[Any] = [
    None, 3, True, "", "missing.png", "/dev/zero", "../../etc/passwd\0", [], [1, 2], [[1, 2, 3]], [["a"] * 6],
    [[float("nan")] * 6], [[1e300] * 6], [[10**400] * 6], {}, {"size": [2, 2]}, {"size": [2, 2], "counts": [5]},
    {"size": [2, 2], "counts": [-1, 5]}, {"size": [2, 2], "counts": [1.5, 2.5]}, {"size": [2, 2], "counts": "é"},
    {"size": [2, 2], "counts": "o"}, {"size": [2, 2], "counts": "ooooooooo0"}, {"size": [2, 2], "counts": "~"},
    {"size": [0, 2], "counts": []}, {"size": [10**9, 10**9], "counts": [10**18]}, {"size": [True, 4], "counts": [4]},
    {"size": [2, 2], "counts": [2**62, 2**62, 2**62, 2**62 + 4]}, {"size": [30_000, 40_000], "counts": [1_200_000_000]},
    {"size": [10**400, 1], "counts": []}, {"size": [2, 2], "counts": {"a": 1}}, {"size": [2, 2], "polygons": 3},
]  # fmt: skip


@for_each("value", HOSTILE, ids=lambda value: f"{value!s:.40}".replace("\0", "0"))
def test_what_is_no_mask_is_refused(value: Any):
    if value == []:
        assert mask(value, predicted(), (2, 2)).area == 0
        return
    with pytest.raises(UnreadableAnswer):
        mask(value, predicted(), (2, 2))
    with pytest.raises(DataError) as caught:
        mask(value, reference_of(item(None)), (2, 2)) if not isinstance(value, str) else mask(
            {}, reference_of(item(None))
        )
    assert not isinstance(caught.value, UnreadableAnswer)


def test_long_answers_are_refused_fast():
    begin = time.monotonic()
    long = [
        {"size": [8000, 8000], "counts": [1] * 9_000_000},
        {"size": [8000, 8000], "counts": "0" * 9_000_000},
        {"size": [100, 100], "counts": "0" * 7_000_000},
        [[1, 2] * 100_000],
        [[1, 1, 2, 2, 3, 3]] * 100_000,
    ]
    for value in long:
        with pytest.raises(UnreadableAnswer):
            mask(value, predicted(), (100, 100) if isinstance(value, list) else None)
    assert time.monotonic() - begin < 20


def test_frames_are_paired_by_name_then_by_place(tmp_path: Path):
    for number in range(3):
        full = np.full((2, 2), 255, np.uint8)
        full[0, 0] = 0 if number else 255
        write_png(tmp_path / "truth" / f"{9 + number}.png", full)
    for name, level in (("8", 0), ("9", 255), ("10", 255), ("11", 255)):
        write_png(tmp_path / "named" / f"{name}.png", np.full((2, 2), level, np.uint8))
    one = item("truth", tmp_path)
    predicted, truth = video_masks("named", prediction_of(one), "truth", reference_of(one))
    assert [runs.area for runs in predicted] == [4, 4, 4]
    assert [runs.area for runs in truth] == [4, 3, 3]
    empty = {"size": [2, 2], "counts": [4]}
    listed, _ = video_masks([empty, None, [[0, 0, 1, 0, 1, 1]]], prediction_of(one), "truth", reference_of(one))
    assert [runs.area for runs in listed] == [0, 0, 3]
    with pytest.raises(UnreadableAnswer, match="2 frames where the reference has 3"):
        video_masks([empty, None], prediction_of(one), "truth", reference_of(one))


def test_a_cut_picture_is_unreadable(tmp_path: Path):
    write_png(tmp_path / "whole.png", np.random.default_rng(0).integers(0, 255, (60, 60), dtype=np.uint8))
    whole = (tmp_path / "whole.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.png").write_text("no picture")
    for name in ("cut.png", "text.png"):
        with pytest.raises(UnreadableAnswer):
            mask(name, predicted(tmp_path))


@given(st.text(max_size=12))
def test_any_text_is_run_lengths_or_refused(text: str):
    try:
        found = mask({"size": [3, 3], "counts": text}, predicted())
    except UnreadableAnswer:
        return
    assert 0 <= found.area <= 9


CORNERS = st.lists(st.floats(-15, 25, width=32), min_size=6, max_size=12).filter(lambda shape: len(shape) % 2 == 0)


@given(st.lists(CORNERS, max_size=3), st.integers(1, 14), st.integers(1, 14))
def test_polygons_are_drawn_as_on_the_whole_picture(shapes: list[list[float]], height: int, width: int):
    whole = Image.new("1", (width, height))
    for shape in shapes:
        ImageDraw.Draw(whole).polygon(shape, fill=1, outline=1)
    found = mask(shapes, predicted(), (height, width))
    expected = runs_of(np.asarray(whole))
    assert found.size == (height, width)
    assert (found.starts.tolist(), found.ends.tolist()) == (expected.starts.tolist(), expected.ends.tolist())


def test_small_polygons_of_a_large_picture_take_no_time():
    start = time.process_time()
    for place in range(300):
        assert mask([[place, 5, place + 9, 5, place + 9, 20]], predicted(), (5000, 8000)).area > 50
    assert time.process_time() - start < 20
