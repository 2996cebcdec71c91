from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.measures.kit_math import (
    Region,
    colour_counts,
    frames_at_rate,
    is_moving,
    largest_radius,
    middle_frames,
    object_count,
    objects_count,
    prompt_of,
    scene_count,
    spatial_score,
    steadiness,
)
from tests.cases import for_each
from tests.tasks.general_bench.readers.pixel_files import noise


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


@for_each(
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
    assert colour_counts("red", "car", frames) == (3, 2)


def test_objects_are_counted_by_frame():
    frames = [["dog"], ["dog", "cat", "dog"], ["cat"], [], ["hotdog"]]
    assert object_count("dog", frames) == 2
    assert objects_count("dog and cat", frames) == 1


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


@for_each("flow", [np.zeros((2, 2)), np.zeros((2, 2, 3)), np.zeros((0, 2, 2)), np.full((2, 2, 2), np.nan)])
def test_what_is_no_flow_is_refused(flow):
    with pytest.raises(DataError):
        largest_radius(flow)


def test_a_video_moves_from_enough_pairs_on():
    assert is_moving(512, 16, [12.1] * 4 + [12.0] * 11)
    assert not is_moving(512, 16, [12.1] * 3 + [12.0] * 12)


@given(st.integers(1, 40), st.integers(1, 400))
def test_middle_frames_are_in_the_video_and_in_order(count, length):
    found = middle_frames(count, length)
    assert len(found) == count
    assert found == sorted(found)
    assert set(found) <= set(range(length))
    if count <= length:
        assert len(set(found)) == count


def test_middle_frames_by_hand():
    assert middle_frames(3, 9) == [1, 4, 7]
    assert middle_frames(4, 2) == [0, 1, 1, 1]


def test_frames_at_a_rate():
    assert frames_at_rate(2, 45, 24) == [6, 18, 30, 42]
    assert frames_at_rate(8, 10, 8) == [round(place + 0.5) for place in range(10) if round(place + 0.5) < 10]


@for_each(
    ("name", "prompt"), [("a cat-3.mp4", "a cat"), ("dir/a-b-12.mp4", "a-b"), ("plain.mp4", "plain"), ("x-", "x-")]
)
def test_prompts_of_file_names(name, prompt):
    assert prompt_of(name) == prompt


def test_scenes_need_all_words():
    assert scene_count("old bridge", ["a bridge, very old", "a bridge", "", "old bridge"]) == 2
