from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from lmms_eval.errors import DataError, MediaError
from lmms_eval.tasks.general_bench.readers.pictures import read_alpha, read_grey, read_rgb
from tests.cases import for_each
from tests.media.draw import encoded, picture
from tests.media.test_damage import damage, damaged
from tests.tasks.general_bench.readers.pixel_files import noise, png_bytes, write_picture


def test_colours_come_as_they_are(tmp_path):
    array = noise(1, 6, 9, 3)
    assert np.array_equal(read_rgb(write_picture(tmp_path / "a.png", array)), array)


def test_grey_comes_as_it_is_and_colour_as_luma(tmp_path):
    array = noise(1, 6, 9)
    assert np.array_equal(read_grey(write_picture(tmp_path / "a.png", array)), array)
    red = np.zeros((2, 2, 3), np.uint8)
    red[..., 0] = 255
    assert set(read_grey(write_picture(tmp_path / "red.png", red)).ravel().tolist()) == {76}


def test_sixteen_bits_of_grey_are_reduced(tmp_path):
    array = np.array([[0, 255, 256, 65535]], np.uint16)
    assert read_grey(write_picture(tmp_path / "a.png", array)).tolist() == [[0, 0, 1, 255]]


def test_alpha_is_the_channel_where_it_is_used(tmp_path):
    array = np.full((2, 3, 4), 255, np.uint8)
    array[0, 0] = (10, 20, 30, 51)
    found = read_alpha(write_picture(tmp_path / "a.png", array))
    assert found[0, 0] == pytest.approx(0.2)
    assert found[1].tolist() == [1, 1, 1]


def test_alpha_is_grey_where_the_channel_says_nothing(tmp_path):
    array = np.full((2, 3, 4), 255, np.uint8)
    array[0, 0] = (51, 51, 51, 255)
    assert read_alpha(write_picture(tmp_path / "a.png", array))[0, 0] == pytest.approx(0.2)
    grey = np.array([[0, 51, 255]], np.uint8)
    assert read_alpha(write_picture(tmp_path / "b.png", grey)).tolist()[0] == pytest.approx([0, 0.2, 1])


def test_alpha_of_sixteen_bits_keeps_them_even_where_all_are_small(tmp_path):
    array = np.array([[0, 7, 255]], np.uint16)
    assert read_alpha(write_picture(tmp_path / "a.png", array)).tolist()[0] == pytest.approx(
        [0, 7 / 65535, 255 / 65535]
    )


def test_a_rotated_photograph_is_turned_upright(tmp_path):
    image = Image.fromarray(noise(1, 4, 6, 3))
    exif = image.getexif()
    exif[274] = 6
    image.save(tmp_path / "a.png", exif=exif)
    assert read_rgb(tmp_path / "a.png").shape == (6, 4, 3)


@for_each("size", [(64_001, 1000), (2**31 - 1, 2**31 - 1), (9000, 9000)])
def test_a_giant_is_refused_before_it_is_decoded(tmp_path, size):
    (tmp_path / "a.png").write_bytes(png_bytes(*size, b"", depth=8))
    with pytest.raises(MediaError):
        read_rgb(tmp_path / "a.png")


def test_what_is_no_file_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    for path in (tmp_path, tmp_path / "absent.png", tmp_path / "pipe.png", Path("/dev/zero")):
        with pytest.raises(DataError):
            read_grey(path)


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    mode=st.sampled_from(["RGB", "RGBA", "L", "LA", "P", "I;16", "1"]),
    hits=damage,
    cut=st.sampled_from([1.0, 1.0, 0.9, 0.3]),
)
def test_damage_ends_in_an_array_or_in_our_errors(tmp_path, mode, hits, cut):
    path = tmp_path / "a.png"
    path.write_bytes(damaged(encoded(picture(mode), "PNG"), hits, cut))
    for read in (read_rgb, read_grey, read_alpha):
        try:
            assert read(path).shape[:2] != (0, 0)
        except (DataError, MediaError):
            continue
