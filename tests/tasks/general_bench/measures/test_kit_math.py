from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.measures.kit_math import (
    ColourCounts,
    Region,
    colour_counts,
    cosine,
    dynamic_degree,
    largest_radius,
    middle_indices,
    object_count,
    objects_count,
    prompt_of,
    rate_indices,
    scene_count,
    spatial_score,
    steadiness,
)
from tests.tasks.general_bench.readers.pixel_files import noise


@given(count=st.integers(1, 64), length=st.integers(1, 10_000))
def test_middle_frames_are_in_order_in_range_and_as_many_as_wanted(count, length):
    found = middle_indices(count, length)
    assert len(found) == count
    assert found == sorted(found)
    assert found[0] >= 0 and found[-1] < length
    assert len(set(found)) == min(count, length)


def test_middle_frames_of_short_and_long_videos():
    assert middle_indices(4, 7) == [0, 1, 3, 5]
    assert middle_indices(3, 2) == [0, 1, 1]


@pytest.mark.parametrize(("count", "length"), [(0, 5), (5, 0), (-1, 5), (10**9, 5)])
def test_middle_frames_of_nothing_are_refused(count, length):
    with pytest.raises(DataError, match="cannot take"):
        middle_indices(count, length)


@given(rate=st.floats(0.1, 60), length=st.integers(1, 2000), video_rate=st.floats(1, 60))
def test_frames_at_a_rate_are_in_order_and_in_range(rate, length, video_rate):
    found = rate_indices(rate, length, video_rate)
    assert found == sorted(found)
    assert all(0 <= index < length for index in found)
    assert len(found) <= math.ceil(length / video_rate * rate)


@pytest.mark.parametrize(
    "numbers", [(0, 5, 24), (-1, 5, 24), (math.nan, 5, 24), (2, 0, 24), (2, 5, 0), (math.inf, 5, 24)]
)
def test_rates_that_are_none_are_refused(numbers):
    with pytest.raises(DataError, match="cannot take"):
        rate_indices(*numbers)


def test_too_many_samples_are_refused_at_once():
    with pytest.raises(DataError, match="too many"):
        rate_indices(1e300, 100, 1)


@pytest.mark.parametrize(
    ("name", "prompt"),
    [
        ("a red fox-0.mp4", "a red fox"),
        ("folder/a dog-12.mp4", "a dog"),
        ("x-1-2.mp4", "x-1"),
        ("no number-", "no number-"),
        ("route 66-a.mp4", "route 66-a"),
        ("a dog-٣.mp4", "a dog-٣"),
    ],
)
def test_the_prompt_is_the_name_without_its_number(name, prompt):
    assert prompt_of(name) == prompt


def test_places_are_told_by_the_longer_distance_and_not_by_the_side():
    left, right, above = [0, 10, 10, 20], [50, 10, 60, 20], [0, 80, 10, 90]
    assert spatial_score("on the left of", left, right) == spatial_score("on the right of", left, right) == 1
    assert spatial_score("on the top of", left, right) == 0
    assert spatial_score("on the bottom of", left, above) == 1
    assert spatial_score("on the left of", [0, 0, 10, 10], [5, 5, 15, 15]) == 0


def test_overlap_lowers_the_place():
    overlap = 50 / 150
    assert spatial_score("on the left of", [0, 0, 10, 10], [5, 0, 15, 10]) == pytest.approx(0.1 / overlap)


@given(boxes=st.lists(st.lists(st.integers(-50, 50), min_size=4, max_size=4), min_size=2, max_size=2))
def test_places_are_between_zero_and_one(boxes):
    for relation in ("on the left of", "on the top of"):
        assert 0 <= spatial_score(relation, *boxes) <= 1
        assert spatial_score(relation, *boxes) == spatial_score(relation, *reversed(boxes))


@pytest.mark.parametrize(
    ("relation", "box"),
    [("near", [0, 0, 1, 1]), ("on the left of", [0, 0, 1]), ("on the left of", [0, 0, 1, math.nan])],
)
def test_other_places_are_refused(relation, box):
    with pytest.raises(DataError):
        spatial_score(relation, box, [0, 0, 1, 1])


def test_colours_are_counted_by_frame_and_object():
    frames = [
        [Region("a red car", "car"), Region("a red car", "car")],
        [Region("a blue car", "car"), Region("a red bus", "bus")],
        [Region("a parked car", "car")],
        [Region("a red and white car", "car")],
        [],
    ]
    assert colour_counts("red", "car", frames) == ColourCounts(described=3, wanted=2)


def test_objects_and_scenes_are_counted_by_frame():
    frames = [["dog"], ["dog", "cat", "dog"], ["cat"], [], ["hotdog"]]
    assert object_count("dog", frames) == 2
    assert objects_count("dog and cat", frames) == 1
    assert scene_count("snowy mountain", ["a mountain, snowy", "a mountain", "snowy mountains"]) == 2


def test_steady_frames_and_alternating_ones():
    still = np.full((3, 4, 4, 3), 90, np.uint8)
    assert steadiness(still) == 1
    flash = np.array([np.zeros((2, 2, 3)), np.full((2, 2, 3), 255)] * 2)
    assert steadiness(flash) == 0
    assert steadiness([np.full((2, 2), 10), np.full((2, 2), 61), np.full((2, 2), 61)]) == pytest.approx(0.9)


@given(seed=st.integers(0, 2**32 - 1))
def test_steadiness_lies_between_zero_and_one_and_knows_no_direction(seed):
    frames = noise(seed, 4, 3, 5, 3)
    assert 0 <= steadiness(frames) <= 1
    assert steadiness(frames) == pytest.approx(steadiness(frames[::-1]))


def test_one_frame_and_changing_sizes_are_refused():
    with pytest.raises(DataError, match="at least 2 frames"):
        steadiness(noise(1, 1, 2, 2, 3))
    with pytest.raises(DataError, match="cannot be compared"):
        steadiness([noise(1, 2, 2, 3), noise(1, 2, 3, 3)])


def test_the_largest_twentieth_of_a_flow():
    flow = np.zeros((10, 10, 2))
    flow[0, :5] = (3, 4)
    assert largest_radius(flow) == 5
    flow[0, 4] = 0
    assert largest_radius(flow) == 4
    assert largest_radius([[[3.0, 4.0], [0.0, 0.0]]]) == 5


@pytest.mark.parametrize(
    "flow", [np.zeros((2, 2)), np.zeros((2, 2, 3)), np.zeros((0, 2, 2)), np.full((2, 2, 2), np.nan)]
)
def test_what_is_no_flow_is_refused(flow):
    with pytest.raises(DataError):
        largest_radius(flow)


def test_a_video_moves_from_enough_pairs_on():
    found = dynamic_degree(512, 16, [12.1] * 4 + [12.0] * 11)
    assert (found.threshold, found.count_needed, found.moving) == (12.0, 4, True)
    assert not dynamic_degree(512, 16, [12.1] * 3 + [12.0] * 12).moving


def test_angles():
    assert cosine([1, 0], [0, 2]) == 0
    assert cosine([1, 2], [-2, -4]) == -1
    assert cosine([0, 0], [1, 1]) == 0
    assert cosine([1e-200, 1e-200], [1e200, 1e200]) == pytest.approx(1)


@pytest.mark.parametrize(("first", "second"), [([1], [1, 2]), ([1, math.nan], [1, 2]), ([1, 2], [1, math.inf])])
def test_vectors_without_angle_are_refused(first, second):
    with pytest.raises(DataError):
        cosine(first, second)
