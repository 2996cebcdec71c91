import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lmms_eval.errors import ItemError
from lmms_eval.tasks.mmau.utils import aggregate, doc_to_gold, doc_to_text, process_results, write_submission
from lmms_eval.utils.answer_reading import scoring_notes
from tests.cases import for_each

DOC: dict[str, Any] = {
    "id": "u", "audio_id": "a.wav", "question": "Which?", "choices": '["dog", "Cat "]', "answer": "cat",
    "dataset": "d", "task": "sound", "split": "test", "category": "c", "sub-category": "s", "difficulty": "easy",
}  # fmt: skip
FIVE = {**DOC, "choices": json.dumps(["a", "b", "c", "d", "cat"])}


@for_each(
    ("doc", "answer", "chosen", "drew"),
    [
        (DOC, "(B) cat", "Cat ", False),
        (DOC, "D", "", False),
        (FIVE, "E.", "cat", False),
        (FIVE, "(F)", None, True),
        (DOC, "", None, True),
        (DOC, "<think>猫", None, True),
        (DOC, "z" * 100_000, None, True),
    ],
)
def test_the_letter_of_the_answer_chooses(doc: dict[str, Any], answer: str, chosen: str | None, drew: bool) -> None:
    with scoring_notes() as chance:
        made = process_results(doc, [answer])
    assert chance.drew == drew
    prediction = made["submission"]["model_prediction"]
    assert prediction in json.loads(doc["choices"]) if chosen is None else prediction == chosen
    assert made["accuracy"]["overall"] == float(prediction.strip().lower() == "cat")


def test_the_reference_answer_is_right() -> None:
    assert doc_to_gold(DOC) == "(B)"
    assert process_results(DOC, [doc_to_gold(DOC)])["accuracy"] == {"overall": 1.0, "task": "sound"}


@for_each("choices", ["[]", "dog", '{"a": 1}', None, "[1]"])
def test_choices_that_are_no_list_fail_the_document(choices: Any) -> None:
    with pytest.raises(ItemError, match="'choices'"):
        doc_to_text({**DOC, "choices": choices})


def test_percentages_have_five_decimals() -> None:
    made = aggregate([{"overall": score, "task": "music"} for score in (1.0, 1.0, 0.0)])
    assert made.value == made.sub_scores["task"]["music"].value == 66.66667


def test_the_file_holds_the_answers_without_the_sounds(tmp_path: Path) -> None:
    row = process_results({**DOC, "audio": b"RIFF"}, ["B."])["submission"]
    write_submission([row], SimpleNamespace(output_path=str(tmp_path)))
    (written,) = json.loads((tmp_path / "submissions" / "mmau_submission.json").read_text("utf-8"))
    assert written["model_prediction"] == "Cat "
    assert "audio" not in written and "answer" not in written
