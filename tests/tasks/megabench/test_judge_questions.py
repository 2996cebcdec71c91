from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lmms_eval.api.judging import Verdict
from lmms_eval.tasks.megabench.judge_questions import VIDEO_FRAMES, JudgedQuery, questions
from lmms_eval.tasks.megabench.scoring.query import score_query
from lmms_eval.tasks.megabench.scoring.task_spec import TaskSpec, parse_task_spec
from tests.cases import for_each

DEMO = Path(__file__).parents[3] / "lmms_eval" / "tasks" / "megabench" / "demo" / "data" / "Demo"
SOURCES = {"q": "example_question", "ref": "answers.a", "out": "model_output"}


def task(
    metric: str = "gpt_4o_as_judge",
    kind: str = "text only",
    sources: Mapping[str, str] = SOURCES,
    parser: str = "answer_string",
) -> TaskSpec:
    template = " ".join(f"{name}: {{{name}}}" for name in sources) + " {{}}"
    info = {
        "field_score_function": {"a": metric},
        "aggregation": {"function": "mean", "field_weights": {"a": 1}},
        "response_parse_function": parser,
        "gpt4o_eval_configs": {
            "judge_model_type": kind, "eval_criteria_prompt": template, "template_mapping": dict(sources),
        },
    }  # fmt: skip
    return parse_task_spec(info, "demo", ["a"])


def query(truth: Any = "fox", images: tuple[str, ...] = (), context: Mapping[str, Any] | None = None) -> JudgedQuery:
    return JudgedQuery({"a": truth}, "What is it?", images, context or {}, lambda name: DEMO / name)


def test_the_prompt_is_filled_from_reply_question_and_answer() -> None:
    (question,) = questions("Answer: a {red} fox", query(), task())
    assert question.name == "a"
    assert question.build_messages().text() == "q: What is it? ref: fox out: a {red} fox {}"
    assert question.generation["temperature"] == 0
    assert question.accepts("**Score**: 7")
    assert not question.accepts("Score: 7")


def test_pictures_go_along_where_the_task_says_so() -> None:
    images = ("demo_bar_ratio/1.png", "demo_bar_ratio/2.png")
    (alone,) = questions("Answer: x", query(images=images), task())
    assert [part.type for part in alone.build_messages().messages[0].content] == ["text"]
    (question,) = questions("Answer: x", query(images=images), task(kind="with image"))
    assert [part.type for part in question.build_messages().messages[0].content] == ["image", "image", "text"]
    assert question.details == {}


def test_of_a_video_evenly_spaced_pictures_go_along_and_the_record_says_so() -> None:
    (question,) = questions("Answer: x", query(images=("demo_dot_in_video/1.mp4",)), task(kind="with image"))
    types = [part.type for part in question.build_messages().messages[0].content]
    assert types == ["image"] * VIDEO_FRAMES + ["text"]
    assert question.details == {"frames_per_video": 8}


def test_media_are_looked_for_only_when_the_prompt_is_rendered() -> None:
    (question,) = questions("Answer: x", query(images=("absent.png",)), task(kind="with image"))
    with pytest.raises(Exception, match="absent"):
        question.build_messages()


def test_a_sample_that_leaves_the_prompt_unfilled_scores_zero_without_a_question() -> None:
    spec = task(sources={"flag": "eval_context.refused"}, parser="dummy")
    assert questions("I refuse", query(), spec) == []
    score = score_query("I refuse", {"a": "fox"}, spec, {}, {})
    assert (score.fields, score.query) == ({"a": 0.0}, 0.0)
    assert "flag" in score.scorer_errors["a"]
    (question,) = questions("I refuse", query(context={"refused": "yes"}), spec)
    assert question.build_messages().text() == "flag: yes {}"


@for_each(
    ("reply", "truth", "asked"),
    [("/\\", "/\\", 1), ("", "/\\", 0), ("/\\", "", 0), ("/\\", 5, 0)],
)
def test_ascii_pictures_are_drawn_where_both_are_there(reply: str, truth: Any, asked: int) -> None:
    spec = task("ascii_art_gpt4o_judge", parser="ascii_answer_string")
    made = questions(f"Answer:\n```\n{reply}\n```", query(truth), spec)
    assert len(made) == asked
    for question in made:
        first, second, text = question.build_messages().messages[0].content
        sizes = [Image.open(io.BytesIO(part.url)).size for part in (first, second)]
        assert sizes == [(224, 224)] * 2
        assert "ASCII art" in text.text
        assert question.accepts("No.")
        assert not question.accepts("perhaps")


def verdict(text: str | None, error: str | None = None) -> dict[str, Verdict]:
    return {"a": Verdict("a", text, text is not None, "jury", error=error)}


def test_verdicts_become_scores() -> None:
    spec, answer = task(), {"a": "fox"}
    assert score_query("Answer: x", answer, spec, {}, verdict("**Score**: 7")).query == 0.7
    unreadable = score_query("Answer: x", answer, spec, {}, verdict("fine"))
    assert (unreadable.query, unreadable.info["a"]) == (0.0, "Score is NULL: fine;")
    silent = score_query("Answer: x", answer, spec, {}, verdict(None, "timeout: too slow"))
    assert silent.query is None
    assert silent.not_evaluated == {"a": "the judge jury gave no reply: timeout: too slow"}
    without = score_query("Answer: x", answer, spec, {})
    assert without.query is None
    assert "--judge_model" in without.not_evaluated["a"]


def test_rule_tasks_have_no_questions() -> None:
    assert questions("Answer: x", query(), task("exact_str_match")) == []
