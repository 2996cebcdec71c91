"""From a reply to a score: what is asked for is what the measures read."""

import pytest

from lmms_eval.tasks.general_bench.items import MediaInput, UnreadableAnswer
from lmms_eval.tasks.general_bench.measures.contract import Context
from lmms_eval.tasks.general_bench.measures.registry import measure_for
from lmms_eval.tasks.general_bench.prompts.replies import extract_media
from tests.tasks.general_bench.prompts.media_kit import a_picture, an_item, frames

SQUARE = {"size": [8, 8], "counts": [9, 4, 4, 4, 4, 4, 4, 4, 27]}
"""Rows and columns 1 to 4, by columns."""
POLYGON = "[[1, 1, 4, 1, 4, 4, 1, 4]]"


def score(item, reply):
    measure = measure_for(item.facts, item.form)
    return measure.value([measure.state(extract_media(item, reply), item, Context())])


@pytest.fixture
def video(tmp_path):
    return (frames(tmp_path / "f", 3, (8, 8)),)


@pytest.fixture
def picture(tmp_path):
    return (MediaInput("image", (a_picture(tmp_path / "a.png", (8, 8)),)),)


@pytest.mark.parametrize(
    "reply",
    [
        'The bees:\n```json\n[[1, 1, 4, 4, "Bee"], [5, 5, 2, 2, "queen"]]\n```',
        '{"boxes": [{"bbox_2d": [1, 1, 5, 5], "label": "bee"}, {"bbox": [5, 5, 2, 2], "label": "queen"}]}',
        "[[1, 1, 4, 4, 'bee'], [5, 5, 2, 2, 'queen'], [7, 7",
    ],
)
def test_boxes(picture, reply):
    reference = [[1, 1, 4, 4, "bee"], [5, 5, 2, 2, "queen"]]
    item = an_item("Bee Detection", "boxes", "Find them.", picture, reference)
    assert score(item, reply) == pytest.approx(100)
    assert score(item, "[]") == 0


def test_tubes(video):
    box = [1, 1, 4, 4]
    tracking = an_item("Ball Tracking", "tube", "The ball.", video, [box, box, box])
    assert score(tracking, "[[0, [1, 1, 4, 4]], [2, [1, 1, 4, 4]]]") == score(tracking, str([box] * 3))
    assert score(tracking, str([box] * 3)) > 95
    grounding = an_item("Human Video Grounding", "tube", "The man.", video, [None, box, box])
    assert score(grounding, "[null, [1, 1, 4, 4], [1, 1, 4, 4]]") == pytest.approx(100)


def test_masks_of_pictures(picture):
    item = an_item("Lung segmentation", "mask", "The lung.", picture, SQUARE)
    assert score(item, f"Here: {POLYGON}") == pytest.approx(100)
    assert score(item, "[[1, 1], [4, 1], [4, 4], [1, 4]]") == pytest.approx(100)
    assert score(item, "[]") == 0


def test_masks_of_videos(video):
    item = an_item("Human Video Object Segmentation", "masks", "The man.", video, [SQUARE, SQUARE, None])
    assert score(item, f"[{POLYGON}, {POLYGON}, null]") == pytest.approx(100)
    assert score(item, f"[[0, {POLYGON}], [2, null]]") == pytest.approx(100)


def test_objects(picture):
    item = an_item("Vehicle Instance Segmentation", "instances", "Cars.", picture, [{"mask": SQUARE, "label": "car"}])
    assert score(item, f'[{{"mask": {POLYGON}, "label": "car", "score": 0.9}}]') == pytest.approx(100)


def test_key_points(picture):
    points = [[number % 5, number % 7] for number in range(17)]
    item = an_item("Person Keypoint Detection", "instances", "People.", picture, [{"keypoints": points, "area": 16.0}])
    assert score(item, f'[{{"keypoints": {points}, "score": 0.9}}]') == pytest.approx(100)


def test_triplets(picture):
    item = an_item("lmage Scene Graph Parsing", "triplets", "Relations.", picture, [["man", "on", "horse"]])
    assert score(item, '[["man", "on", "horse"], ["dog", "near", "man"]]') == pytest.approx(100)


def test_numbers_and_texts(picture):
    assert score(an_item("Crowd Counting", "number", "How many?", picture, 23), "There are 23 people.") == 0
    assert score(an_item("Animal Sound Detection", "text", "Which?", (), "dog"), " Dog\n") == 100
    assert score(an_item("Color Aware Object Matching", "text", "Which?", (), "B"), "B <p>") == 100


def test_a_reply_in_another_form_says_why(picture):
    item = an_item("Bee Detection", "boxes", "Find them.", picture, [[1, 1, 4, 4, "bee"]])
    with pytest.raises(UnreadableAnswer, match="I see no bees"):
        score(item, "I see no bees.")
