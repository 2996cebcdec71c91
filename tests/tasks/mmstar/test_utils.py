from __future__ import annotations

import base64
import io
import logging

import pytest
from PIL import Image

from lmms_eval.errors import MediaError
from lmms_eval.results.reading import reading_of
from lmms_eval.results.sample import Sample
from lmms_eval.tasks.mmstar import utils
from tests.cases import for_each

DOC = {"index": 1, "question": "<image 1> Which?", "answer": " b ", "category": "math", "l2_category": "geometry"}


@for_each(
    ("answer", "score"),
    [("B", 1.0), ("b", 0.0), ("(B)", 1.0), ("", 0.0), ("I'm sorry, but I can't", 0.0), ("x" * 100_000, 0.0)],
)
def test_the_letter_counts_for_the_category_and_the_average(answer: str, score: float) -> None:
    scored = utils.process_results(DOC, [answer])
    assert {name: row["score"] for name, row in scored.items()} == {"math": score, "average": score}


@for_each(("answer", "kind"), [("I say (B)", "read"), ("hmm", "unparsed")])
def test_an_audit_sees_what_was_read(answer: str, kind: str) -> None:
    line = {"doc_id": 0, "filtered_resps": answer, **utils.process_results(DOC, [answer])}
    reading = reading_of(Sample("mmstar", line))
    assert reading is not None
    assert reading.kind == kind


def test_a_category_in_another_spelling_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        utils.process_results(DOC | {"category": "Maths"}, ["B"])
    assert "unknown category 'Maths'" in caplog.text


def test_the_average_is_over_subcategories_and_not_over_documents() -> None:
    rows = [{"l2_category": name, "score": score} for name, score in (("x", 1.0), ("x", 1.0), ("x", 1.0), ("y", 0.0))]
    assert utils.aggregate(rows).value == 0.5
    assert utils.aggregate([]).value is None


def test_options_in_columns_follow_the_question_as_it_stands() -> None:
    doc = DOC | {"question": " <image 1> Which? \n", "A": "red", "B": "blue", "C": None, "D": "nan"}
    asked = "  Which? \n\nOptions:\nA. red\nB. blue"
    assert utils.doc_to_text_columns(doc, {"post_prompt": "Go. "}) == f"{asked}\nGo."
    assert utils.doc_to_text_columns(doc) == asked


def test_a_picture_in_base64() -> None:
    file = io.BytesIO()
    Image.new("L", (3, 2)).save(file, "PNG")
    (picture,) = utils.doc_to_visual_base64({"image": base64.b64encode(file.getvalue()).decode()})
    assert (picture.mode, picture.size) == ("RGB", (3, 2))
    with pytest.raises(MediaError):
        utils.doc_to_visual_base64({"image": "no picture"})
