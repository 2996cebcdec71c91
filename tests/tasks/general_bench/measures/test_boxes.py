from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pytest

from lmms_eval.errors import ConfigError, DataError
from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from tests.cases import for_each
from tests.tasks.general_bench.measures.region_items import ALL, CONTEXT, counts_of, item, value

MASK = np.zeros((6, 8), bool)
MASK[1:4, 2:6] = True
BODY = {"keypoints": [[x, x, 2] for x in range(17)], "area": 400}


def test_instances_from_masks_boxes_and_points():
    truth = item([{"mask": counts_of(MASK), "label": "car"}])
    measure = ALL["detection_ap@50/instances"]
    assert value(measure, ([{"box": [2, 1, 4, 3], "label": "Car"}], truth)) == 100
    assert value(measure, ([{"box": [2, 1, 4, 1], "label": "Car"}], truth)) == 0
    assert value(measure, ([{"mask": [[2, 1, 5, 1, 5, 3, 2, 3]]}], truth)) == 100
    points = item([{"indices": [5, 3, 4, 9], "label": "chair"}, {"indices": [20, 21], "label": "table"}])
    found = [{"indices": [3, 4, 5], "label": "chair", "score": 0.1}, {"indices": [20], "label": "table"}]
    assert value(ALL["map@50"], (found, points)) == 100
    assert value(ALL["map@50"], (found[:1], points)) == 50
    assert value(ALL["map@50"], (None, points)) == 0


def test_wrong_instances_where_nothing_is():
    assert value(ALL["map@50"], ([{"mask": "missing.png"}], item([]))) == 0


def test_key_points():
    measure = ALL["detection_ap@50/keypoints"]
    assert value(measure, ([BODY], item([BODY]))) == 100
    assert value(measure, ([{"keypoints": [[x + 99, 0] for x in range(17)]}], item([BODY]))) == 0
    assert value(measure, (None, item([BODY]))) == 0
    hidden = {"keypoints": [[0, 0, 0]] * 17, "area": 9}
    assert value(measure, ([BODY], item([hidden, BODY]))) == 100
    labelled = [{**hidden, "label": "seated"}, {**BODY, "label": "standing"}]
    assert value(measure, ([{**BODY, "label": "standing"}], item(labelled))) == 100
    with pytest.raises(UnreadableAnswer, match="2 points a body where the reference has 17"):
        value(measure, ([{"keypoints": [[1, 2], [3, 4]]}], item([BODY])))


def test_key_points_of_other_bodies_need_spreads():
    hand = {"keypoints": [[0, 0], [10, 10]], "area": 100}
    with pytest.raises(DataError, match="sigmas"):
        value(ALL["detection_ap@50/keypoints"], ([hand], item([hand])))
    assert value(ALL["detection_ap@50/keypoints"], ([hand], item([hand], sigmas=[0.05, 0.05]))) == 100


def test_tracks():
    truth = item([[0, 0, 10, 10], None, [5, 5, 10, 10]], form="tube")
    assert value(ALL["auc"], ([[0, 0, 10, 10], [1, 1, 1, 1], [5, 5, 10, 10]], truth)) == pytest.approx(2000 / 21)
    assert value(ALL["auc"], ([None, None, [5, 5, 10, 10]], truth)) == pytest.approx(1000 / 21)
    with pytest.raises(UnreadableAnswer, match="2 boxes where the reference has 3 frames"):
        value(ALL["auc"], ([None, None], truth))
    with pytest.raises(DataError, match="no box in any frame"):
        value(ALL["auc"], ([None], item([None])))


def test_tracks_by_the_authors_number():
    truth, context = item([[0, 0, 10, 10], None, [50, 50, 10, 10]], form="tube"), CONTEXT.having(tracking="j_and_f")
    perfect = [[0, 0, 10, 10], [0, 0, 0, 0], [50, 50, 10, 10]]
    # J: frames 1 and 3 of 3. F: each box of no size overlaps nothing, so that it is wrong, and the true one is missed.
    assert ALL["auc"].state(perfect, truth, context) == pytest.approx(100 * (2 / 3))
    swapped = [[50, 50, 10, 10], None, [0, 0, 10, 10]]
    # J: nothing. F takes boxes of any frame.
    assert ALL["auc"].state(swapped, truth, context) == pytest.approx(50 * (2 / 3))
    with pytest.raises(ConfigError, match="tracking: 'x' is neither"):
        ALL["auc"].state(perfect, truth, CONTEXT.having(tracking="x"))


def test_a_track_of_masks_is_that_of_their_boxes():
    truth = item([[2, 1, 3, 2]], form="tube")
    assert value(ALL["auc"], ([counts_of(MASK)], truth)) == value(ALL["auc"], ([[2, 1, 3, 2]], truth))
    with pytest.raises(UnreadableAnswer, match="size of a mask"):
        value(ALL["auc"], ([{"mask": 1}], truth))


def test_tubes_count_frames_with_either_box():
    truth = item([[0, 0, 10, 10], None, [5, 5, 10, 10], None], form="tube")
    assert value(ALL["m_viou"], ([[0, 0, 10, 10], [1, 1, 1, 1], [5, 5, 10, 10], None], truth)) == pytest.approx(200 / 3)
    assert value(ALL["m_viou"], ([[0, 0, 10, 10], None, [5, 5, 10, 10], [0, 0, 0, 0]], truth)) == 100
    assert value(ALL["m_viou"], ([None] * 4, truth)) == 0


def test_grounding_takes_one_box_alone():
    assert value(ALL["detection_ap@10"], ([0, 0, 10, 3], item([0, 0, 10, 10]))) == 100
    assert value(ALL["detection_ap@50"], ([0, 0, 10, 3], item([0, 0, 10, 10]))) == 0


@for_each("name", sorted(name for name, measure in ALL.items() if measure.form != "labels"))
def test_states_are_json(name: str):
    references: dict[str, Any] = {
        "boxes": [[0, 0, 1, 1, "a"]], "tube": [[0, 0, 1, 1]], "triplets": [["a", "on", "b"]],
        "instances": [{"mask": counts_of(MASK), "label": "a"}], "mask": counts_of(MASK), "masks": [counts_of(MASK)],
        "number": 1, "saliency": [counts_of(MASK)], "map": counts_of(MASK),
    }  # fmt: skip
    measure = ALL[name]
    reference = [BODY] if "keypoints" in name else references[measure.form]
    one = item(reference, form=measure.form)
    states = [measure.state(reference, one, CONTEXT)]
    if measure.unanswered is not None:
        states.append(measure.unanswered(one, CONTEXT))
    assert json.loads(json.dumps(states, allow_nan=False)) == states
    perfect = measure.value(states[:1])
    assert perfect == pytest.approx(2000 / 21 if name == "auc" else 100)
    assert 0 <= measure.value(states) <= 100
    assert measure.checked


def test_many_boxes_are_matched_fast():
    draw = np.random.default_rng(0)
    boxes = draw.uniform(1, 500, (10_000, 4)).tolist()
    begin = time.monotonic()
    value(ALL["detection_ap@50"], (boxes, item(boxes[:1000])))
    assert time.monotonic() - begin < 20
