import math
from typing import Any

import pytest

from lmms_eval.tasks.megabench.metrics import coordinates
from lmms_eval.tasks.megabench.metrics.values import DetailedScore
from tests.cases import for_each

POINT = "<point>0.5, 0.5</point>"


@for_each(
    ("response", "score"),
    [(POINT, 1), ([0.5, 0.2], 0.7), ("<point>0.5, 1.2</point>", 0), ("0.5, 0.5", 0), ([0.5], 0), (None, 0)],
)
def test_distance(response: Any, score: float) -> None:
    assert coordinates.xml_norm_point_distance(response, POINT) == pytest.approx(score)


def test_a_point_in_a_box_stops_the_search() -> None:
    context = {"bounding_boxes": ["(0, 0, 0.1, 0.1)", "(0.10, 0, 1, 1)", "(0, 0, 1, 1)"]}
    assert coordinates.xml_norm_point_in_bbox(POINT, context) == DetailedScore(
        1.0,
        {"(0, 0, 0.1, 0.1)": False, "(0.10, 0, 1, 1)": False, "(0.1, 0, 1, 1)": True, "(0, 0, 1, 1)": False},
    )
    assert coordinates.xml_norm_point_in_bbox(5, {"bounding_boxes": ["(0, 0, 1, 1)"]}).score == 0


@for_each("context", [{}, {"bounding_boxes": []}, {"bounding_boxes": ["bad"]}])
def test_a_malformed_context_raises(context: dict[str, Any]) -> None:
    with pytest.raises((LookupError, ValueError)):
        coordinates.xml_norm_point_in_bbox(POINT, context)


@for_each(
    ("response", "score"),
    [
        ("[(0.1, 0.2), (0.3, 0.4)]", 1),
        ([[0.1, 0.2], [0.3, 0.5]], (1 + math.exp(-1 / math.sqrt(2))) / 2),
        ("{(0.1, 0.2): 1, (0.3, 0.4): 2}", 1),
        ("[(0.1, 0.2)]", 0),
        ([[0.1, 0.2], [0.3]], 0),
        ([[0.1, 0.2], ["0.3", 0.4]], 0),
        ([0.1, 0.2], 0),
        (None, 0),
    ],
)
def test_sequence_of_points(response: Any, score: float) -> None:
    assert coordinates.sequence_coords_similarity(response, "[(0.1, 0.2), (0.3, 0.4)]") == pytest.approx(score)


def test_no_points_on_both_sides_raise() -> None:
    with pytest.raises(ValueError, match="no points"):
        coordinates.sequence_coords_similarity("[]", "[]")
