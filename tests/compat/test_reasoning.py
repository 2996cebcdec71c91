"""The reasoning variants: what the recorded vectors leave open."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.compat import llm_judge
from lmms_eval.metrics import math_answers
from lmms_eval.tasks._task_utils import reasoning_utils as reasoning
from tests.cases import for_each
from tests.servers.stub import StubServer

PIECES = [
    "<think>",
    "</think>",
    "<analysis>",
    "</analysis>",
    "<answer>",
    "</answer>",
    "\\boxed{",
    "}",
    "1.5",
    ".",
    "\n",
    " ",
]
TEXTS = st.lists(st.sampled_from([*PIECES, "a", "7"]), max_size=14).map("".join)
FORMS = tuple(re.compile(f"<{tag}>.*</{tag}>.*<answer>.*</answer>", re.DOTALL) for tag in ("think", "analysis"))


@given(text=TEXTS)
def test_the_form_is_that_of_the_patterns(text: str) -> None:
    is_formed = any(form.fullmatch(text) for form in FORMS) or bool(reasoning.extract_boxed_answer(text))
    assert (reasoning.format_reward(text) == 1.0) == is_formed


@given(text=TEXTS)
def test_the_answer_is_that_of_the_patterns(text: str) -> None:
    tagged = re.search("<answer>(.*?)</answer>", text, re.DOTALL)
    if tagged:
        assert reasoning.extract_anwser_tag(text) == tagged[1]
    elif not reasoning.extract_boxed_answer(text):
        lines = (re.search(r"\b(\d+(?:\.\d+)?)\b(?:\s*\.?\s*$)", line) for line in reversed(text.split("\n")))
        assert reasoning.extract_anwser_tag(text) == next((found[1] for found in lines if found), "")


@for_each("piece", ["<think></think><answer>", "\\boxed{", "1 ", " ", "{}", "1.", "</think>"])
def test_long_texts_take_linear_time(piece: str) -> None:
    text = "<think>" + "1" + piece * 100_000 + "x"
    start = time.process_time()
    reasoning.format_reward(text)
    reasoning.extract_anwser_tag(text)
    assert time.process_time() - start < 2


def test_media_are_what_they_are() -> None:
    picture = Image.new("RGB", (2, 2))
    visuals = [picture, "a.png", "clip.mp4", "say.wav", {"type": "video", "url": "v"}]
    messages = reasoning.make_reasoning_doc_to_messages(lambda doc: visuals, lambda doc, kwargs: kwargs["text"])
    _, user = messages({}, {"text": " Q "})
    assert [part["type"] for part in user["content"]] == ["image", "image", "video", "audio", "video", "text"]
    assert user["content"][0]["url"] is picture


def test_without_math_verify_a_score_that_rests_on_it_is_not_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(math_answers, "_is_installed", lambda: False)
    process = reasoning.make_reasoning_process_results("data", lambda doc, _: "q")
    assert process({"answer": "B"}, ["<answer>B</answer>"]) == {"acc_score": 1.0, "format_score": 0.0}
    with pytest.raises(NotEvaluated, match=r"pip install 'lmms_eval\[math\]'"):
        process({"answer": "4"}, ["<answer>5</answer>"])


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubServer]:
    monkeypatch.setattr("lmms_eval.compat.reasoning.default_verify", lambda truth, predict: False)
    monkeypatch.setitem(llm_judge.WANTED, "0/1", "")  # the given answer, which the stub repeats, ends the prompt
    with StubServer() as server:
        monkeypatch.setenv("USE_LLM_JUDGE", "True")
        monkeypatch.setenv("JUDGE_API_KEY", "key")
        monkeypatch.setenv("JUDGE_BASE_URL", server.url)
        monkeypatch.setenv("JUDGE_MODEL_NAME", "jury")
        yield server


def test_the_judge_is_asked_where_rules_say_no(judge: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert reasoning.acc_reward("azure ANSWER=1", "sky blue", {"question": "Which colour?"}) == 1.0
    (body,) = judge.bodies()
    assert (body["model"], body.get("max_tokens", body.get("max_completion_tokens"))) == ("jury", 5)
    assert all(part in str(body["messages"]) for part in ("Which colour?", "azure", "sky blue"))
    assert reasoning.acc_reward("sky blue", "sky blue") == 1.0
    monkeypatch.setenv("USE_LLM_JUDGE", "true")
    assert reasoning.acc_reward("azure ANSWER=1", "sky blue") == 0.0
    assert len(judge.bodies()) == 1


@pytest.mark.parametrize(
    ("form", "padding", "score", "asked"), [(0.0, 0, 1.0, 2), (1.0, 0, 0.0, 1), (0.0, 500, 0.0, 1)]
)
def test_the_judge_sees_a_short_solution_without_the_format(
    judge: StubServer, form: float, padding: int, score: float, asked: int
) -> None:
    solution = "x" * padding + " thus azure ANSWER=1"
    assert reasoning.acc_reward("azure ANSWER=0", "sky blue", None, form, solution) == score
    assert len(judge.bodies()) == asked
