from __future__ import annotations

from lmms_eval.tasks.realworldqa.utils import doc_to_text, process_results
from tests.cases import for_each


@for_each(
    ("gold", "answer", "official", "fixed"),
    [
        ("B", "The answer is B.", 1.0, 1.0),
        ("b", "B", 1.0, 1.0),
        ("2", "Two.", 0.0, 1.0),
        ("2", "2..", 1.0, 1.0),
        ("Downhill", "downhill", 1.0, 1.0),
        ("Downhill", "It is downhill", 0.0, 0.0),
        ("2", "２", 0.0, 0.0),
        ("2", "", 0.0, 0.0),
    ],
)
def test_letters_and_short_answers(gold: str, answer: str, official: float, fixed: float) -> None:
    assert process_results({"answer": gold}, [answer]) == {"exact_match": official, "exact_match_fixed": fixed}


def test_a_frame_with_an_end_takes_the_place_of_the_instruction() -> None:
    instruction = "Please answer directly with only the letter of the correct option and nothing else."
    doc = {"question": f" Which? {instruction} "}
    assert doc_to_text(doc, {"pre_prompt": "Q: ", "post_prompt": ""}) == f"Q: Which? {instruction}"
    assert doc_to_text(doc, {"post_prompt": "!"}) == "Which? !"
