from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from lmms_eval.tasks.general_bench.readers.pictures import class_numbers, frame_files, grey
from lmms_eval.tasks.general_bench.readers.regions import paired
from lmms_eval.tasks.general_bench.readers.sides import Side, prediction_of, reference_of
from tests.tasks.general_bench.measures.region_items import item, write_png


def predicted(folder: Path) -> Side:
    return prediction_of(item(None, folder))


def test_levels_keep_their_depth(tmp_path: Path):
    write_png(tmp_path / "eight.png", np.array([[7, 255]], np.uint8))
    write_png(tmp_path / "sixteen.png", np.array([[7, 65535]], np.uint16))
    eight, sixteen = (grey(tmp_path / name, predicted(tmp_path)) for name in ("eight.png", "sixteen.png"))
    assert (eight.tolist(), eight.dtype) == ([[7, 255]], np.uint8)
    assert (sixteen.tolist(), sixteen.dtype) == ([[7, 65535]], np.uint16)


def test_fractions_are_no_levels(tmp_path: Path):
    Image.fromarray(np.array([[0.5]], np.float32)).save(tmp_path / "float.tif")
    with pytest.raises(UnreadableAnswer, match="fractions"):
        grey(tmp_path / "float.tif", predicted(tmp_path))


def test_colours_as_numbers(tmp_path: Path):
    Image.new("RGB", (1, 1), (1, 2, 3)).save(tmp_path / "colour.png")
    assert class_numbers(tmp_path / "colour.png", predicted(tmp_path)).tolist() == [[1 + 2 * 256 + 3 * 65536]]


def test_other_sizes_are_refused_before_decoding(tmp_path: Path):
    name = write_png(tmp_path / "mask.png", np.random.default_rng(0).integers(0, 255, (50, 40), dtype=np.uint8))
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UnreadableAnswer, match="40 x 50 pixels where 9 x 9"):
        grey(tmp_path / name, predicted(tmp_path), (9, 9))
    with pytest.raises(UnreadableAnswer, match="cannot be used"):
        grey(tmp_path / name, predicted(tmp_path), (50, 40))


def test_a_huge_picture_is_refused(tmp_path: Path):
    Image.new("1", (9000, 9000)).save(tmp_path / "huge.png")
    with pytest.raises(UnreadableAnswer, match="9000x9000"):
        grey(tmp_path / "huge.png", predicted(tmp_path))
    with pytest.raises(DataError) as caught:
        grey(tmp_path / "huge.png", reference_of(item(None, tmp_path)))
    assert not isinstance(caught.value, UnreadableAnswer)


def test_frames_in_natural_order(tmp_path: Path):
    for name in ("10.png", "9.png", "a.txt", ".hidden.png"):
        (tmp_path / name).touch()
    assert [path.name for path in frame_files(tmp_path, predicted(tmp_path))] == ["9.png", "10.png"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnreadableAnswer):
        frame_files(tmp_path / "empty", predicted(tmp_path))


def test_frames_in_step():
    side = prediction_of(item(None))
    one, two, three = Path("1.jpg"), Path("2.jpg"), Path("3.jpg")
    truth = [Path("3.png"), Path("1.png")]
    assert paired([one, two, three], side, truth) == [(three, truth[0]), (one, truth[1])]
    others = [Path("a.png"), Path("b.png")]
    assert paired([one, two], side, others) == [(one, others[0]), (two, others[1])]
    with pytest.raises(UnreadableAnswer, match="3 frames where the reference has 2"):
        paired([one, two, three], side, others)
