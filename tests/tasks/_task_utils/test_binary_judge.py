import json

import pytest

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import Unscored
from lmms_eval.tasks._task_utils import binary_judge
from tests.cases import for_each
from tests.parity.vectors import GOLDEN_DIR


@for_each(
    ("reply", "official", "fixed"),
    [
        ("1", 1, 1), ("0", 0, 0), ("[1]", 1, 1), ("Score: 1", 1, 1), ("1.", 1, 1), ("", 0, 0), ("no", 0, 0),
        ("10", 1, 0), ("0 (not 1)", 1, 0), ("0.1", 1, 0), ("step1: 0", 1, 0), ("-1", 1, 0), ("判定：1", 1, 1),
        ("x" * 100_000, 0, 0),
    ],
)  # fmt: skip
def test_replies(reply, official, fixed):
    assert binary_judge.read(reply) == (official, fixed)


def test_without_a_reply_there_is_no_score():
    def scores(verdicts):
        return list(binary_judge.scores(verdicts, "right").values())

    assert scores({}) == [Unscored("needs a judge: give --judge_model")] * 2
    lost = Verdict("binary", None, False, "j", error="timeout: 5 s")
    assert scores({"binary": lost}) == [Unscored("the judge gave no reply: timeout: 5 s")] * 2
    assert binary_judge.scores({"binary": Verdict("binary", "1", True, "j")}, "right") == {"right": 1, "right_fixed": 1}


def test_the_question_shows_all_parts_as_they_are():
    asked = binary_judge.question("What is {x}?", "{y}", "{prediction}", None)
    for part in ("\nWhat is {x}?\n", "\n{y}\n", "\n{prediction}\n", "Reply 1 if", "and 0 in every"):
        assert part in asked["prompt"]


def test_the_authors_text_is_taken_from_the_users_file():
    file = GOLDEN_DIR / "popular_tasks" / "judge_prompts.json"
    if not file.exists():
        pytest.skip(f"no texts at {file}")
    settings = {"judge_prompts": str(file)}
    used = binary_judge.TEXT.used(settings)
    assert used.is_authors
    wanted = json.loads(file.read_text("utf-8"))["binary_judge"]
    wanted = wanted.format(question="q", answer="a", prediction="p", positive="1", negative="0")
    assert binary_judge.question("q", "a", "p", settings)["prompt"] == wanted
