import numpy as np
import pytest

from lmms_eval.errors import MediaError
from lmms_eval.tasks.general_bench.prompts.point_views import AZIMUTHS, SIZE, views
from tests.cases import for_each


def brightest(image):
    """Row and column of the brightest pixels' middle."""
    pixels = np.asarray(image)
    rows, columns = np.nonzero(pixels == pixels.max())
    return rows.mean(), columns.mean()


def test_four_pictures_the_same_each_time():
    cloud = np.random.default_rng(1).normal(size=(500, 3))
    first, second = views(cloud), views(cloud)
    assert len(first) == len(AZIMUTHS)
    assert {image.size for image in first} == {(SIZE, SIZE)}
    assert {image.mode for image in first} == {"L"}
    for one, other in zip(first, second, strict=True):
        assert one.tobytes() == other.tobytes()
    assert first[0].tobytes() != first[1].tobytes()


def test_the_place_and_the_unit_of_a_cloud_do_not_show():
    cloud = np.random.default_rng(2).normal(size=(200, 3))
    moved = cloud * 8 + [64, -32, 16]
    difference = np.asarray(views(cloud)[0], float) - np.asarray(views(moved)[0], float)
    assert np.mean(difference != 0) < 0.001


def test_height_is_up_and_what_is_near_is_bright():
    cross = np.array([[0, 0, 1.0], [0, 0, -1], [1, 1, 0], [-1, -1, 0]])
    picture = np.asarray(views(cross)[0])
    assert picture[: SIZE // 2].any()
    assert picture[SIZE // 2 :].any()
    row, column = brightest(views(cross)[0])  # from 45 degrees, [1, 1, 0] is nearest: in the middle, below
    assert abs(column - SIZE / 2) < 2
    assert row > SIZE / 2
    assert brightest(views(cross)[2])[0] > SIZE / 2  # [-1, -1, 0] from the other side


def test_nothing_leaves_the_picture():
    cloud = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 1.0]])
    for image in views(cloud):
        pixels = np.asarray(image)
        assert not pixels[0].any()
        assert not pixels[:, 0].any()
        assert not pixels[-1].any()
        assert not pixels[:, -1].any()


def test_a_single_point_is_in_the_middle_and_nan_is_passed_over():
    for image in views(np.array([[3.0, 4, 5, 9], [np.nan, 0, 0, 0]])):
        assert brightest(image) == pytest.approx((SIZE / 2, SIZE / 2))


@for_each("cloud", [np.zeros((0, 3)), np.full((2, 3), np.nan), np.zeros((4, 2)), np.array([["a"] * 3])])
def test_what_is_no_cloud(cloud):
    with pytest.raises(MediaError, match="point"):
        views(cloud)


def test_extreme_coordinates_do_not_break_it():
    assert len(views(np.array([[1e308, 0, 0], [-1e308, 1, 1]]))) == 4


def test_a_large_cloud_is_thinned():
    cloud = np.random.default_rng(3).normal(size=(450_000, 3))
    assert np.asarray(views(cloud, 64)[0]).any()
