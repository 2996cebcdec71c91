from types import SimpleNamespace

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import Unscored
from lmms_eval.tasks.llava_in_the_wild import utils
from tests.cases import for_each

TASK = SimpleNamespace(prompts=SimpleNamespace(kwargs={}))
DOC = {"question": "What?", "gpt_answer": "Old.", "category": "conv", "caption": ["A thing.", "A table."]}


def rows(reply, doc=DOC):
    return utils.process_results(doc, ["New."], {"review": Verdict("review", reply, True, "j", error="lost")})


def test_the_judge_reads_context_question_answers_and_rule():
    (asked,) = utils.doc_to_judge(DOC, ["New {x}."])
    assert asked["prompt"].startswith(
        "[Context]\nA thing.\nA table.\n\n[Question]\nWhat?\n\n[Assistant 1]\nOld.\n\n[End of Assistant 1]\n\n"
        "[Assistant 2]\nNew {x}.\n\n[End of Assistant 2]\n\n[System]\nTwo AI assistants"
    )
    assert asked["details"] == {"compares": ["reference", "answer"]}
    (other,) = utils.doc_to_judge({**DOC, "category": "other"}, ["x"])
    assert other["prompt"].endswith("[End of user 2]\n\n[System]\n\n\n")


@for_each(
    ("reply", "scores"),
    [
        ("\n8 7", [8, 7]), (" \r\n\t\n9,8 \nfor 5", [9, 8]), ("\u30008 7\n", [8, 7]), ("\n\nScores:\n8 7", [-1, -1]),
        ("8 7\nWell.", [8, 7]), ("9.5, 6.5", [9.5, 6.5]), ("(8;9)", [8, 9]), ("1. 9 8", [1, 9]), ("-1 5", [-1, 5]),
        ("Scores:\n8 7", [-1, -1]), ("eight", [-1, -1]), ("", [-1, -1]), ("8", [-1, -1]),
    ],
)  # fmt: skip
def test_ratings(reply, scores):
    made = rows(reply)
    assert made["gpt_eval_llava_all"]["scores"] == made["gpt_eval_llava_conv"]["scores"] == scores
    assert made["gpt_eval_llava_detail"]["scores"] == [-999, -999]
    assert {row["review"] for row in made.values()} == {reply.strip()}


def test_without_a_reply_there_is_no_score():
    assert set(rows(None).values()) == {Unscored("the judge gave no reply: lost")}
    assert set(utils.process_results(DOC, ["x"], {}).values()) == {Unscored("needs a judge: give --judge_model")}


def test_the_score_is_a_ratio_of_means_without_failed_judgements():
    judged = [rows(reply) for reply in ("8 7", "9 9", "?")]
    made = utils.aggregate_all([row["gpt_eval_llava_all"] for row in judged], TASK)
    assert made.value == 94.1
    assert made.notes[0] == "failed: 1 of 3 judgements hold no two ratings and are left out"
    assert made.details["llava_bench_means"] == {"all": [8.5, 8.0], "conv": [8.5, 8.0]}
    assert utils.aggregate([row["gpt_eval_llava_detail"] for row in judged]).value is None
    assert utils.aggregate([rows("0 5")["gpt_eval_llava_all"]]).value is None
