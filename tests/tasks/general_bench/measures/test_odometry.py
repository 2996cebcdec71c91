import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.general_bench.measures.geometry import relative_translation_error, translation_errors
from tests.cases import for_each


def driven(frames, step=1.0, turn=0.0):
    """Poses of a car that drives ``step`` metres and turns by ``turn`` radians a frame."""
    poses = [np.eye(4)]
    motion = np.eye(4)
    motion[:3, :3] = [[math.cos(turn), 0, math.sin(turn)], [0, 1, 0], [-math.sin(turn), 0, math.cos(turn)]]
    motion[2, 3] = step
    for _ in range(frames - 1):
        poses.append(poses[-1] @ motion)
    return np.array(poses)


def by_loops(truth, estimate):
    """The same definition without arrays, for paths longer than 100 m."""
    along = [0.0]
    for before, after in itertools.pairwise(truth):
        along.append(along[-1] + float(np.linalg.norm(after[:3, 3] - before[:3, 3])))
    errors = []
    for first in range(0, len(truth), 10):
        for length in range(100, 900, 100):
            last = next((at for at in range(first, len(truth)) if along[at] > along[first] + length), None)
            if last is not None:
                moved = np.linalg.inv(truth[first]) @ truth[last]
                guessed = np.linalg.inv(estimate[first]) @ estimate[last]
                errors.append(np.linalg.norm((np.linalg.inv(guessed) @ moved)[:3, 3]) / length)
    return 100 * sum(errors) / len(errors)


def error(truth, estimate):
    return relative_translation_error([translation_errors(truth, estimate)])


def test_a_scale_that_is_too_long_is_its_share():
    truth, estimate = driven(1200), driven(1200, 1.02)
    # the end of a sub-sequence is the first frame beyond its length, here one metre farther
    expected = [2 * (length + 1) / length for length in range(100, 900, 100)]
    counts = [(1200 - length - 2) // 10 + 1 for length in range(100, 900, 100)]
    assert error(truth, estimate) == pytest.approx(np.average(expected, weights=counts))
    assert translation_errors(truth, estimate)["count"] == sum(counts)


def test_the_same_by_loops():
    source = np.random.default_rng(3)
    truth = driven(1000, 0.97, 0.004)
    estimate = truth.copy()
    estimate[:, :3, 3] += source.normal(0, 0.5, (1000, 3))
    assert error(truth, estimate) == pytest.approx(by_loops(truth, estimate))


def test_a_short_path_is_measured_over_its_own_eighths():
    truth, estimate = driven(81, 0.5), driven(81, 0.55)
    found = translation_errors(truth, estimate)
    # 40 m: lengths of 5 to 35 m end one frame (0.5 m) beyond
    counts = [81 - 10 * part - 1 for part in range(1, 8)]
    assert found["count"] == sum(counts)
    expected = [0.1 * (5 * part + 0.5) / (5 * part) for part in range(1, 8)]
    assert found["total"] == pytest.approx(np.dot(expected, counts))


def test_sequences_are_pooled_by_their_sub_sequences():
    long, short = driven(1000), driven(150)
    pair = [translation_errors(long, driven(1000, 1.1)), translation_errors(short, short)]
    assert relative_translation_error(pair) == pytest.approx(
        100 * pair[0]["total"] / (pair[0]["count"] + pair[1]["count"])
    )


@for_each(
    ("frames", "step", "count"),
    [
        (151, 1.0, 5),  # 150 m: from the frames 0, 10, ... 40 on more than 100 m are left
        (101, 1.0, sum(100 - int(12.5 * part) for part in range(1, 8))),  # 100 m are short
        (3, 0.125, 7 + 3),  # 0.25 m: all seven lengths from the first frame, 1/8 to 3/8 from the second
        (2001, 0.03125, sum((1999 - 250 * part) // 3 + 1 for part in range(1, 8))),  # from every third frame
    ],
)
def test_how_many_sub_sequences_there_are(frames, step, count):
    assert translation_errors(driven(frames, step), driven(frames, step))["count"] == count


@for_each("frames", [1, 2, 50])
def test_standing_still_gives_none(frames):
    assert translation_errors(driven(frames, 0.0), driven(frames, 1.0))["count"] == 0


@given(st.integers(2, 300), st.floats(0.1, 3), st.floats(-0.05, 0.05), st.floats(-50, 50))
def test_a_perfect_track_has_no_error_wherever_it_starts(frames, step, turn, shift):
    truth = driven(frames, step, turn)
    moved = np.eye(4)
    moved[:3, :3] = [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]
    moved[:3, 3] = shift
    found = translation_errors(truth, moved @ truth)
    assert found["total"] == pytest.approx(0, abs=1e-7)
