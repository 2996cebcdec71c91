import re

import datasets
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import ItemError
from lmms_eval.tasks.vstar_bench.utils import (
    aggregate,
    doc_to_text,
    letter,
    only_relative_position,
    options_of,
    process_results,
)
from tests.cases import for_each

DOC = {"question_id": "1", "text": "Where is it? (A) left (B) right", "category": "relative_position", "label": "B"}


@for_each(
    ("answer", "official", "strict"),
    [
        ("B", "B", "B"),
        ("b) right", "B", "B"),
        ("Because of the light", "B", None),
        ("Cats", "C", None),
        ("It is (a)", "A", "A"),
        ("the answer is: D", "D", "D"),
        ("", None, None),
        ("我认为是B", "B", "B"),
        ("BBB", "B", None),
        ("<think>E", None, None),
        ("x" * 100_000, None, None),
    ],
)
def test_a_letter_is_found_by_several_forms(answer: str, official: str | None, strict: str | None) -> None:
    assert letter(answer) == official
    made = process_results(DOC, [answer])
    assert made["vstar_overall_acc_fixed"]["prediction"] == strict
    assert made["vstar_overall_acc"]["extracted"] == official


def test_options_get_lines_of_their_own() -> None:
    assert doc_to_text(DOC, {"post_prompt": "\nLetter."}) == "Where is it?\nA. left\nB. right\nLetter."
    assert doc_to_text({"text": "No options"}) == "No options"


def test_a_document_counts_for_its_category_and_the_whole() -> None:
    made = process_results(DOC, ["B"])
    assert set(made) >= {"vstar_relative_position_acc", "vstar_overall_acc"}
    whole = aggregate([made["vstar_overall_acc"], {"category": "direct_attributes", "score": 0.0}])
    assert whole.value == 50.0
    assert whole.sub_scores["category"]["relative_position"].value == 100.0
    with pytest.raises(ItemError, match="'E'"):
        process_results({**DOC, "label": "E"}, ["B"])


def test_a_category_asks_its_own_questions_alone() -> None:
    docs = datasets.Dataset.from_list([DOC, {**DOC, "category": "direct_attributes"}])
    assert only_relative_position(docs)["category"] == ["relative_position"]


@given(st.lists(st.sampled_from(["(A)", "(B)", "(", ")", " ", "\n", "x", "(E)"]), max_size=12).map("".join))
def test_options_are_those_of_the_published_expression(text: str) -> None:
    assert options_of(text) == re.findall(r"\([A-D]\)\s*([^()]+?)(?=\s*\([A-D]\)|$)", text)
