"""The adapter of the popular benchmarks, on vectors of our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cases import for_each
from tests.parity.adapters import popular_tasks
from tests.parity.replay import line_state

MENDED = "popular_faults_are_mended"
IMAGE = {"$image": [8, 8, "#102030"]}
POPE = {
    "id": "1", "question_id": "1", "question": "Is there a drum?", "answer": "perhaps", "image_source": "x",
    "image": IMAGE, "category": "random",
}  # fmt: skip
MATHVISTA = {
    "pid": "2", "question": "How many drums?", "image": "2.jpg", "decoded_image": IMAGE, "choices": None, "unit": None,
    "precision": 4.0, "answer": "1.2345", "question_type": "free_form", "answer_type": "float",
    "metadata": {}, "query": "Hint: x\nQuestion: How many drums?",
}  # fmt: skip
MMMU = {
    "id": "validation_Art_1", "question": "See <image 3>.", "options": "['a', 'b']", "explanation": "", "answer": "A",
    "question_type": "multiple-choice", "subfield": "x", "topic_difficulty": "Easy", "img_type": "['x']",
    "image_1": IMAGE, **{f"image_{place}": None for place in range(2, 8)},
}  # fmt: skip
VIDEO = {
    "video_id": "7", "duration": "short", "domain": "Art", "sub_category": "x", "url": "x", "videoID": "v7",
    "question_id": "7-1", "task_type": "Counting Problem", "question": "Which?", "options": ["A. a.", "B. b."],
    "answer": "B",
}  # fmt: skip
NOT_THERE = {"error": "SystemExit", "message": "does not exist"}
KEY_ERROR = {"error": "KeyError", "message": "'shot'"}


def error(call: str, task: str, wanted: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"id": "x", "kind": "error", "call": call, "task": task, "wanted": wanted, **others}


@for_each(
    ("content", "state"),
    [
        # An item is refused with an error of our tree.
        (error("process", "pope", {"error": "AssertionError", "message": ""}, doc=POPE, answers=["yes"]), "passed"),
        (
            error("process", "pope", KEY_ERROR, doc=POPE, answers=["yes"], wanted_fixed={"pope_accuracy": {}}),
            "failed",
        ),
        # A document that scores is no refusal.
        (error("process", "pope", KEY_ERROR, doc={**POPE, "answer": "yes"}, answers=["yes"]), "failed"),
        # A whole document is prompted, one without its media is not.
        (error("prompt", "mathvista_testmini_format", KEY_ERROR, doc=MATHVISTA), "passed"),
        (error("prompt", "mathvista_testmini_format", NOT_THERE, doc=MATHVISTA), "failed"),
        (error("prompt", "mmmu_val", {"error": "KeyError", "message": "'image_3'"}, doc=MMMU), "passed"),
        (error("prompt", "mmmu_val", KEY_ERROR, doc={**MMMU, "question": "See <image 1>."}), "passed"),
        (error("prompt", "videomme", NOT_THERE, doc=VIDEO, files=[]), "passed"),
        (error("prompt", "videomme", NOT_THERE, doc=VIDEO, files=["videomme/data/v7.mp4"]), "failed"),
        # What is unknown is told by its name.
        (
            error(
                "aggregate", "ocrbench", {"error": "KeyError", "message": "'Dance'"}, metric="ocrbench_accuracy",
                results=[{"question_type": "Dance", "score": 1, "prediction": "x", "ground_truth": "x"}],
            ),
            "passed",
        ),
        (
            error(
                "aggregate", "ocrbench", {"error": "KeyError", "message": "'Opera'"}, metric="ocrbench_accuracy",
                results=[{"question_type": "Dance", "score": 1, "prediction": "x", "ground_truth": "x"}],
            ),
            "failed",
        ),
    ],
)  # fmt: skip
def test_errors_are_refusals_or_named_outcomes(tmp_path: Path, content: dict[str, Any], state: str) -> None:
    assert line_state(tmp_path, "popular_tasks/made.jsonl", content) == state


def test_an_exception_of_another_kind_is_no_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(record: Any) -> Any:
        raise KeyError(record["task"])

    monkeypatch.setattr(popular_tasks, "processed", crash)
    content = error("process", "pope", {"error": "AssertionError", "message": ""}, doc=POPE, answers=["yes"])
    assert line_state(tmp_path, "popular_tasks/made.jsonl", content) == "failed"


@for_each(("shown", "state"), [("", MENDED), ("other words", "failed")])
def test_subtitles_without_font_tags_are_wanted_as_text(tmp_path: Path, shown: str, state: str) -> None:
    text = (
        f"This video's subtitles are listed below: \n{shown}\nSelect the best answer to the following multiple-choice "
        "question based on the video and the subtitles. Respond with only the letter (A, B, C, or D) of the correct "
        "option.\nWhich?\nA. a.\nB. b.\nThe best answer is:"
    )
    video = "$HF_HOME/videomme/data/v7.mp4"
    parts = [{"type": "video", "url": video}, {"type": "text", "text": text}]
    content = {
        "id": "x", "kind": "prompt", "task": "videomme_w_subtitle", "model": None, "doc": VIDEO,
        "wanted": {"text": text, "visuals": [video], "messages": [{"role": "user", "content": parts}]},
        "subtitle_file": "1\n00:00:00,000 --> 00:00:09,000\nonly plain words\n",
        "video": {"frames": 100, "fps": 10.0},
    }  # fmt: skip
    assert line_state(tmp_path, "popular_tasks/made.jsonl", content) == state


@for_each(("average", "state"), [(0.0, MENDED), (50.0, "failed")])
def test_a_lost_value_is_the_average_of_the_records_own_tables(tmp_path: Path, average: float, state: str) -> None:
    row = {
        "question_id": "0", "query": "q", "choices": ["a", "b"], "answer": "a", "extraction": "B", "prediction": "b",
        "true_false": False, "question_type": "multi_choice", "answer_type": "text", "precision": 0,
        "metadata": {
            "category": "c", "context": "x", "grade": "g", "language": "english", "skills": ["s"], "source": "S",
            "split": "testmini", "task": "t", "img_height": 9, "img_width": 9,
        },
    }  # fmt: skip
    scores = {"scores": {"average": {"accuracy": average, "correct": 0, "total": 1}}}
    content = {
        "id": "x", "kind": "aggregate", "task": "mathvista_testmini_format", "metric": "llm_as_judge_eval",
        "results": [row], "wanted": {"value": None, "sub_scores": scores},
    }  # fmt: skip
    assert line_state(tmp_path, "popular_tasks/made.jsonl", content) == state


@for_each("metric", ["gpt_eval_llava_all", "gpt_eval_llava_conv"])
def test_both_means_stand_beside_the_number_of_all_and_of_a_category(tmp_path: Path, metric: str) -> None:
    rows = [
        {"question": "q", "ans1": "a", "ans2": "b", "context": "c", "category": "llava_bench_conv", "review": "r",
         "scores": scores, "eval_model": "m", "content": "c"}
        for scores in ([8, 7], [-999, -999], [10, 9])
    ]  # fmt: skip
    content = {
        "id": "x", "kind": "aggregate", "task": "llava_in_the_wild", "metric": metric, "results": rows,
        "wanted": {"value": 88.9, "sub_scores": {"stats": [9.0, 8.0]}},
    }  # fmt: skip
    assert line_state(tmp_path, "popular_tasks/made.jsonl", content) == "passed"
    content["wanted"]["sub_scores"]["stats"] = [9.0, 9.0]
    assert line_state(tmp_path, "popular_tasks/made.jsonl", content) == "failed"
