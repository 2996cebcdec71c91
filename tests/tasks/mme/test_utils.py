import pytest

from lmms_eval.errors import ItemError
from lmms_eval.tasks.mme.utils import aggregate, label, process_results
from tests.cases import for_each

DOC = {"question_id": "a.png", "question": "Is it red? Please answer yes or no.", "answer": "Yes", "category": "color"}


@for_each(
    ("answer", "wanted"),
    [("Yes.", "yes"), ("NO", "no"), ("n", "no"), ("y.", "yes"), ("nothing", "no"), ("I know", "other"), ("", "other")],
)
def test_an_answer_is_read_by_its_beginning(answer: str, wanted: str) -> None:
    assert label(answer) == wanted


def test_an_answer_counts_for_its_half_and_for_the_total() -> None:
    made = process_results(DOC, ["yes"])
    assert made["mme_perception_score"]["score"] == 1.0
    assert set(made) == {"mme_perception_score", "mme_total"}


def test_a_reference_that_is_neither_yes_nor_no_fails_the_document() -> None:
    with pytest.raises(ItemError, match="'Maybe'"):
        process_results({**DOC, "answer": "Maybe"}, ["yes"])


def test_a_category_gives_up_to_200_and_a_half_pair_is_left_out() -> None:
    def row(name: str, category: str, score: float) -> dict[str, object]:
        return {"question_id": name, "category": category, "score": score}

    rows = [row("a", "x", 1.0), row("a", "x", 1.0), row("b", "x", 1.0), row("b", "x", 0.0), row("c", "y", 1.0)]
    made = aggregate(rows)
    assert made.value == 125.0  # (200 + 50) / 2
    assert {name: score.value for name, score in made.sub_scores["category"].items()} == {"x": 125.0}
    assert made.notes[0].startswith("incomplete_questions: 1 of 3 ")
