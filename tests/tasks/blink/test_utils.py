from typing import Any

import pytest
from PIL import Image

from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import ItemError
from lmms_eval.tasks.blink.utils import doc_to_messages, doc_to_text, process_results
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.selection import select_tasks
from tests.cases import for_each

DOC: dict[str, Any] = {
    "idx": "val_1", "sub_task": "Counting", "image_1": Image.new("RGB", (4, 4)), "image_2": None, "image_3": None,
    "image_4": None, "choices": ["one", "two", "three"], "answer": "(B)", "prompt": "<image>How many {}?",
}  # fmt: skip


@for_each(
    ("answer", "official", "strict"),
    [
        ("(B)", "B", "B"),
        ("b. two", "B", "B"),
        ("Because", "B", ""),
        ("The answer is B", "T", ""),
        ("D", "D", ""),
        ("", "", ""),
        ("答案是B", "", ""),
        ("<think>B", "", ""),
        ("z" * 100_000, "Z", ""),
    ],
)
def test_the_letter_at_the_start_counts(answer: str, official: str, strict: str) -> None:
    made = process_results(DOC, [answer])
    assert (made["blink_acc"]["pred_parsed"], made["blink_acc_fixed"]["pred_parsed"]) == (official, strict)


def test_the_frame_names_the_letters_and_braces_of_the_question_stay() -> None:
    assert doc_to_text(DOC, {"pre_prompt": "One of {}.\n"}) == "One of A, B, C.\n<image>How many {}?"


def test_several_pictures_are_numbered_for_neo_ov() -> None:
    doc = {**DOC, "image_3": DOC["image_1"], "prompt": f"<image> {DOC['prompt']} \n"}
    (turn,) = doc_to_messages(doc, {"prompt_format": "neo_ov"})
    texts = [part.get("text") for part in turn["content"]]
    instruction = "Answer with the option's letter from the given choices directly."
    assert texts == ["Image-1: ", None, "Image-2: ", None, f"How many {{}}?\n{instruction}"]


def test_a_reference_that_is_no_letter_fails_the_document() -> None:
    with pytest.raises(ItemError, match="'hidden'"):
        process_results({**DOC, "answer": "hidden"}, ["B"])


def test_the_group_is_the_plain_mean_of_fourteen_configurations() -> None:
    selection = select_tasks(["blink"], Catalogue(), TaskOptions())
    assert len(selection.tasks) == 14
    names = {task.name: task.config.dataset_name for task in selection.tasks}  # type: ignore[attr-defined]
    assert names["blink_iq_test"] == "IQ_Test"
    assert names["blink_multi_view_reasoning"] == "Multi-view_Reasoning"
    assert {task.name for task in select_tasks(["blink_groups"], Catalogue(), TaskOptions()).tasks} == set(names)
