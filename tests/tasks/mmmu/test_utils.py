from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from PIL import Image

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import Unscored
from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import ItemError, TaskError
from lmms_eval.tasks import Catalogue, select_tasks
from lmms_eval.tasks.mmmu import utils
from lmms_eval.tasks.yaml.task import YamlTask
from tests.cases import for_each

FIRST, SECOND = Image.new("RGB", (1, 1)), Image.new("RGB", (2, 1))


def document(**columns: Any) -> dict[str, Any]:
    doc = {"id": "validation_Art_Theory_3", "question": "<image 1>?", "options": "['cat', 'dog']", "answer": "B"}
    return doc | {"question_type": "multiple-choice", "image_1": FIRST, "image_2": SECOND} | columns


def said(doc: dict[str, Any], *answers: str) -> Any:
    return utils.process_results(doc, answers)["mmmu_acc"]


def test_pictures_stand_where_the_text_names_them() -> None:
    doc = document(question="See <image 2> and <image 1>, again <image 2>.", options="['<image 1>', 'none']")
    (turn,) = utils.doc_to_messages(doc, {"multiple_choice_prompt": "Go."})
    shown = [part.get("text") or part["url"].width for part in turn["content"]]
    assert shown == ["See", 2, "and", 1, ", again", 2, ".\nA.", 1, "B. none\n\nGo."]


def test_qwen_gets_all_pictures_first() -> None:
    settings = {"format": "qwen3_vl", "pre_prompt": "Q: ", "post_prompt": "Letter."}
    (turn,) = utils.doc_to_messages(document(), settings)
    assert [part["type"] for part in turn["content"]] == ["image", "text"]
    assert turn["content"][1]["text"] == "Q: <image 1>?\nOptions:\nA. cat\nB. dog\nLetter."


@for_each("form", ["", "qwen3_vl"])
def test_the_only_picture_may_be_shown_twice(form: str) -> None:
    def widths(doc: dict[str, Any], times: int) -> list[int]:
        (turn,) = utils.doc_to_messages(doc, {"format": form, "num_image": times})
        return [part["url"].width for part in turn["content"] if part["type"] == "image"]

    assert widths(document(), 1) == [1] and widths(document(), 2) == [1, 1]
    assert widths(document(question="<image 1> <image 2>"), 2) == [1, 2]
    with pytest.raises(TaskError, match="num_image must be 1 or 2, not 3"):
        widths(document(), 3)


def test_one_right_answer_of_several_is_enough() -> None:
    assert said(document(), "(A)", "(B)")["parsed_pred"] == ["A", "B"]
    assert said(document(), "(A)", "(B)")["correct"] is True
    assert said(document(), "(A)")["correct"] is False


def test_an_open_answer_is_right_here_and_never_by_the_reference() -> None:
    doc = document(question_type="open", options="[]", answer="['24/7', '3.43']")
    scored = utils.process_results(doc, ["It is 3.43."])
    assert scored["mmmu_acc"]["correct"] and not scored["mmmu_acc_reference"]["correct"]
    assert utils.aggregate([scored["mmmu_acc"]]).value == 1
    assert utils.aggregate_reference([scored["mmmu_acc_reference"]]).value == 0


@for_each("answer", ["", "I'm sorry, but I can't help.", "x" * 100_000, "答え", "<think>B", "٣"])
@for_each("kind", ["open", "multiple-choice"])
def test_any_answer_is_scored(answer: str, kind: str) -> None:
    assert isinstance(said(document(question_type=kind), answer)["correct"], bool)


@for_each("name", ["plain", "train_Art_1", "validation_Art", "validation__1"])
def test_an_id_without_a_subject_is_named(name: str) -> None:
    with pytest.raises(ItemError, match=f"mmmu: column 'id' holds '{name}'"):
        utils.process_results(document(id=name), ["A"])


@for_each(
    ("answer", "shown"),
    [("so <answer> B </answer> <answer>C</answer>", "B"), ("B", "B"), ("<answer>B", "<answer>B")],
)
def test_a_judge_sees_the_answer_between_the_first_tags(answer: str, shown: str) -> None:
    (question,) = utils.doc_to_judge(document(), [answer], {"multiple_choice_prompt": "Letter."})
    assert utils.final(answer) == shown
    assert (
        shown in question["prompt"] and "A. cat\nB. dog" in question["prompt"] and "Letter." not in question["prompt"]
    )


def test_a_judges_reply_gives_two_scores() -> None:
    verdict = Verdict("binary", "0 (not 1)", True, "j")
    scored = utils.process_judged(document(), ["B"], {"binary": verdict})
    assert scored == {"llm_as_judge_eval": 1, "llm_as_judge_eval_fixed": 0}
    assert isinstance(utils.process_judged(document(), ["B"], {})["llm_as_judge_eval"], Unscored)


def test_the_submission_is_one_mapping(tmp_path: Path) -> None:
    rows = [
        utils.process_results(document(id="test_Art_1"), ["B"])["submission"],
        utils.process_results(document(id="test_Art_2", question_type="open"), ["so 12"])["submission"],
    ]
    made = utils.write_submission(rows, SimpleNamespace(output_path=str(tmp_path)))
    (file,) = made.details["submission_files"]
    assert Path(file).name == utils.SUBMISSION
    assert Path(file).read_text("utf-8") == '{"test_Art_1": "B", "test_Art_2": "12.0"}'


OPEN = {"question_type": "open", "options": "[]", "answer": "5"}
LETTER, PHRASE = (
    "Answer with the option's letter from the given choices directly.",
    "Answer the question using a single word",
)


@for_each(("name", "model", "columns", "end"), [
    ("mmmu_val_reasoning", "", {}, "B. dog\n\n"), ("mmmu_val_reasoning", "", OPEN, "<image 1>?\n\n"),
    ("mmmu_val_reasoning", "qwen3_vl", {}, "<image 1>?\nA. cat\nB. dog\n\n"),
    ("mmmu_val_pass64", "", {}, f"B. dog\n\n{LETTER}"),
    ("mmmu_val_pass64", "qwen3_vl", OPEN, f"<image 1>?\n\n{PHRASE} or phrase."),
    ("mmmu_val_qwen", "", {}, "Question: <image 1>?\nOptions:\nA. cat\nB. dog\nAnswer with the option letter only."),
    ("mmmu_val_qwen", "", OPEN, "Question: <image 1>?\nOptions:\n\nPlease answer the question directly."),
])  # fmt: skip
def test_the_variants_show_pictures_first_and_have_instructions_of_their_own(
    name: str, model: str, columns: dict[str, Any], end: str
) -> None:
    (task,) = select_tasks([name], Catalogue(), TaskOptions(model_name=model)).tasks
    (turn,) = cast(YamlTask, task).prompts.own_turns(document(**columns))
    assert [part["type"] for part in turn["content"]] == ["image", "text"]
    assert turn["content"][1]["text"].endswith(end)
