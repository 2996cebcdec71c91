import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.general_bench.measures.geometry import (
    MAX_STEPS,
    Tracked,
    amota,
    scene_counts,
)

pytest.importorskip("scipy")


def track(name, places, score=1.0, label="car"):
    """The object's frames: a place on the x axis, or None."""
    return [None if place is None else Tracked(name, label, place, 0.0, score) for place in places]


def scene(*tracks):
    return [[one for one in frame if one is not None] for frame in zip(*tracks, strict=True)]


TRUTH = scene(track("a", [0, 1, 2, 3]), track("b", [50, 51, 52, 53]))


def test_a_perfect_tracker():
    found = scene(track("x", [0, 1, 2, 3]), track("y", [50, 51, 52, 53]))
    counts = scene_counts(TRUTH, found)
    assert counts == {"car": {"objects": 8, "steps": [[1.0, 8, 0, 0]]}}
    assert amota([counts]) == 1


def test_nothing_found_and_nothing_there():
    assert amota([scene_counts(TRUTH, [[]] * 4)]) == 0
    assert amota([scene_counts([[]] * 4, TRUTH)]) == 0
    assert amota([]) == 0


def test_misses_switches_and_false_alarms_are_counted():
    found = scene(track("x", [0, 1, None, None]), track("y", [None, None, 2, 3]), track("z", [99, 99, 99, 99]))
    assert scene_counts(TRUTH, found)["car"] == {"objects": 8, "steps": [[1.0, 4, 4, 1]]}
    # recall 0.5: of the 40 recalls 0.1 + 0.9 n / 39 those up to 0.5 (n <= 17) are reached, with 1 - (1 + 4) / 4 < 0
    assert amota([scene_counts(TRUTH, found)]) == 0
    without_z = scene(track("x", [0, 1, None, None]), track("y", [None, None, 2, 3]))
    assert amota([scene_counts(TRUTH, without_z)]) == pytest.approx(18 / 40 * (1 - 1 / 4))


def test_tracks_enter_by_their_mean_score():
    sure, unsure = track("x", [0, 1, 2, 3], 0.9), track("y", [50, 51, 52, 53], 0.2)
    false = track("z", [99, 99, 99, 99], 0.5)
    steps = scene_counts(TRUTH, scene(sure, unsure, false))["car"]["steps"]
    assert [tuple(step[:3]) for step in steps] == [
        (pytest.approx(0.9), 4, 0),
        (pytest.approx(0.5), 4, 4),
        (pytest.approx(0.2), 8, 4),
    ]
    # up to recall 0.5 without an error, above it 1 - 4/8
    assert amota([scene_counts(TRUTH, scene(sure, unsure, false))]) == pytest.approx((18 + 22 * 0.5) / 40)


def test_a_pair_stays_while_it_is_near_and_others_get_the_least_distance():
    truth = scene(track("a", [0, 0]), track("b", [1.5, 1.5]))
    kept = scene(track("x", [0, 1.0]), track("y", [1.5, 0.5]))  # in the second frame the others would be nearer
    assert scene_counts(truth, kept)["car"]["steps"][0][3] == 0
    crossed = scene(track("x", [0, 3.0]), track("y", [1.5, -0.6]))
    assert scene_counts(truth, crossed)["car"]["steps"] == [[1.0, 4, 0, 2]]
    first = scene(track("a", [0]), track("b", [1.5]))
    assert scene_counts(first, scene(track("x", [1.0]), track("y", [-1.9])))["car"]["steps"][0][1] == 2


def test_two_metres_are_the_limit_and_height_does_not_count():
    for place, hits in ((2.0, 1), (2.001, 0)):
        found = scene_counts(scene(track("a", [0])), scene(track("x", [place])))
        assert found["car"]["steps"][0][1] == hits


def test_a_lost_object_found_by_another_track_is_a_switch():
    truth = scene(track("a", [0, 0, 0]))
    found = scene(track("x", [0, None, None]), track("y", [None, None, 0]))
    assert scene_counts(truth, found)["car"]["steps"] == [[1.0, 2, 0, 1]]


def test_classes_are_apart_and_averaged():
    truth = scene(track("a", [0, 0]), track("b", [0, 0], label="bus"))
    found = scene(track("x", [0, 0]))
    counts = scene_counts(truth, found)
    assert set(counts) == {"car", "bus"}
    assert amota([counts]) == pytest.approx(0.5)


def test_scenes_are_pooled_at_the_same_scores():
    one = {"car": {"objects": 4, "steps": [[0.9, 4, 0, 0]]}}
    other = {"car": {"objects": 4, "steps": [[0.8, 0, 4, 0], [0.1, 4, 4, 0]]}}
    # recall 0.5 with no error at 0.9; from there on 8 hits and 4 false alarms
    assert amota([one, other]) == pytest.approx((18 + 22 * 0.5) / 40)
    assert amota([other, one]) == amota([one, other])
    switching = {"car": {"objects": 4, "steps": [[0.8, 2, 0, 1], [0.1, 4, 0, 2]]}}
    # recalls 0.5, 0.75 and 1 with 0, 1 and 2 switches: 18, 10 (up to n = 28) and 12 of the 40 recalls
    assert amota([one, switching]) == pytest.approx((18 + 11 * (1 - 1 / 6) + 11 * (1 - 2 / 8)) / 40)


def test_many_scores_are_counted_at_some_of_them():
    found = scene(*(track(f"{number}", [number * 10], number / 500) for number in range(1, 301)))
    steps = scene_counts(found, found)["car"]["steps"]
    assert len(steps) == MAX_STEPS
    assert steps[-1] == [1 / 500, 300, 0, 0]
    scores = [step[0] for step in steps]
    assert scores == sorted(scores, reverse=True)


@given(st.integers(0, 2**32 - 1))
def test_between_0_and_1_and_1_for_the_truth_itself(seed):
    source = np.random.default_rng(seed)
    truth = scene(*(track(f"{n}", list(source.uniform(0, 40, 5))) for n in range(source.integers(1, 5))))
    found = scene(*(track(f"{n}", list(source.uniform(0, 40, 5)), source.random()) for n in range(3)))
    assert 0 <= amota([scene_counts(truth, found)]) <= 1
    assert amota([scene_counts(truth, truth)]) == 1
