from __future__ import annotations

import logging

import pytest
from PIL import Image

from lmms_eval.errors import ItemError
from lmms_eval.tasks._task_utils import mmmu

RED = Image.new("L", (3, 2))


def test_pictures_are_shown_once_in_the_order_of_their_numbers() -> None:
    doc = {"id": "x", "question": "<image 2> <image 1> <image 2>", "options": "['<image 3>']"}
    doc |= {f"image_{number}": Image.new("L", (number, 1)) for number in (1, 2, 3)}
    assert [(image.width, image.mode) for image in mmmu.doc_to_visual(doc)] == [(1, "RGB"), (2, "RGB"), (3, "RGB")]


def test_a_picture_that_is_not_there_is_named() -> None:
    with pytest.raises(ItemError, match=r"x: the text names <image 2>, but column 'image_2'"):
        mmmu.doc_to_visual({"id": "x", "question": "<image 2>", "options": "[]", "image_1": RED, "image_2": None})


def test_a_choice_needs_options_and_takes_five() -> None:
    with pytest.raises(ItemError, match="a choice needs options"):
        mmmu.chosen({"id": "x", "options": "[]"}, ["A"])
    assert mmmu.chosen({"id": "x", "options": "['a', 'b', 'c', 'd', 'e']"}, ["(E)", "A"]) == ["E", "A"]


def test_several_answers_to_a_document_are_drawn_apart() -> None:
    doc = {"id": "x", "options": "['a', 'b', 'c', 'd']"}
    assert set(mmmu.chosen(doc, ["no idea"] * 40)) == set("ABCD")


def test_accuracy_by_domain_and_subject(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        found = mmmu.accuracy(["Math", "Art", "Math", "Alchemy"], [1.0, 0.0, 0.0, 1.0])
    parts = found.sub_scores["subject"]
    assert found.value == 0.5 and found.stderr and found.scores == (1.0, 0.0, 0.0, 1.0)
    assert list(parts)[:2] == ["Overall-Art and Design", "Art"]
    assert (parts["Overall-Science"].value, parts["Overall-Science"].n) == (0.5, 2)
    assert (parts["Overall-Business"].n, parts["Overall"].n) == (0, 4)
    assert "Alchemy" in caplog.text and "Alchemy" not in parts
    assert mmmu.accuracy([], []).value is None
