from __future__ import annotations

from lmms_eval.tasks.mmmu_pro import utils

DOC = {"id": "test_Art_1", "subject": "Art", "answer": "J", "options": str([f"thing {number}" for number in range(10)])}


def test_answers_to_the_vision_set_are_read_and_the_reference_compares_them_whole() -> None:
    scored = utils.process_results_vision(DOC, ["The answer is (J)."])
    assert [utils.aggregate([scored[name]]).value for name in ("mmmu_acc", "mmmu_acc_reference")] == [1.0, 0.0]
    scored = utils.process_results_vision(DOC, ["J"])
    assert [utils.aggregate([scored[name]]).value for name in ("mmmu_acc", "mmmu_acc_reference")] == [1.0, 1.0]


def test_the_vision_set_shows_options_to_qwen_alone() -> None:
    assert utils.doc_to_text_vision(DOC, {"post_prompt": "Go."}) == "Go."
    shown = utils.doc_to_text_vision(DOC, {"format": "qwen3_vl", "vision_prompt": "Look.", "post_prompt": "Go."})
    assert shown.startswith("Look.\nOptions:\nA. thing 0\n") and shown.endswith("J. thing 9\nGo.")
