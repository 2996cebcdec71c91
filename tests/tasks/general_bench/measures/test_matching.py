from __future__ import annotations

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.measures.text_math import (
    audio_contains,
    exact_match,
    reference_texts,
    video_contains,
)
from tests.cases import for_each


@for_each(
    ("prediction", "reference", "expected"),
    [
        (" B ", "B", 1.0),
        ("b", "B", 0.0),
        ("B.", "B", 0.0),
        ("C", ["A", " C "], 1.0),
        (3, "3", 1.0),
        ("3", [3], 1.0),
        ("", "", 1.0),
        ("x", [], 0.0),
    ],
)
def test_exact_match_of_language_tasks(prediction, reference, expected):
    assert exact_match(prediction, reference) == expected


@for_each("reference", [3, None, {"a": 1}])
def test_a_reference_that_is_neither_text_nor_list_is_refused(reference):
    with pytest.raises(DataError, match="neither text nor a list"):
        exact_match("3", reference)


@for_each(
    ("prediction", "reference", "expected"),
    [
        ("the answer is northern", "Northern", 1.0),  # holds "no": case does not count
        ("the answer is western", "Western", 0.0),
        ("31", "3", 1.0),
        ("anything", " ", 1.0),
        ("Yes", "no", 0.0),
    ],
)
def test_video_containment_keeps_the_oddities_of_the_reference(prediction, reference, expected):
    assert video_contains(prediction, [reference]) == expected


def test_reference_texts_name_the_place():
    assert reference_texts(("a", 2)) == ["a", "2"]
    with pytest.raises(DataError, match="item 7"):
        reference_texts(1.5, "item 7")


def test_audio_containment_folds_the_prediction_alone():
    assert audio_contains(" It is RIVER ", "river") == 1
    assert audio_contains("It is River", "River") == 0
    assert audio_contains("label 3", 3) == 1
