from types import SimpleNamespace

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import Unscored
from lmms_eval.tasks.mmvet import utils
from tests.cases import for_each

DOC = {"question_id": "v1", "question": "What?", "answer": "red<AND>blue", "capability": "ocr,rec"}


def scored(reply):
    return utils.process_results(DOC, ["x"], {"rating": Verdict("rating", reply, True, "j", error="lost")})


def test_the_last_row_of_the_table_is_left_open():
    (asked,) = utils.doc_to_judge(DOC, ["a {b} | c"])
    assert asked["prompt"].endswith("\nWhat? | red <AND> blue | a {b} | c |")


@for_each(("reply", "score"), [("0.3 because", 0.3), ("1\n", 1.0), ("half", 0.0), ("0.9|", 0.0)])
def test_ratings(reply, score):
    assert scored(reply)["gpt_eval_score"]["score"] == score
    assert scored(reply)["gpt_eval_score"]["eval_model"] == "j"


@for_each("reply", ["", "  ", "\n\t"])
def test_of_blank_replies_no_model_is_named(reply):
    row = scored(reply)["gpt_eval_score"]
    assert (row["score"], row["eval_model"]) == (0.0, "")


@for_each("reply", ["5", "-0.5", "nan", "inf"])
def test_a_number_that_is_no_rating_gives_no_score(reply):
    said = Unscored(f"the judge's rating is not from 0 to 1: {reply}")
    assert scored(reply) == {"gpt_eval_score": said}


def test_without_a_reply_there_is_no_score():
    assert scored(None) == {"gpt_eval_score": Unscored("the judge gave no reply: lost")}
    assert utils.process_results(DOC, ["x"], {}) == {"gpt_eval_score": Unscored("needs a judge: give --judge_model")}


def test_scores_by_capability_and_by_set():
    rows = [{"capabilities": "ocr,rec", "score": 1.0}, {"capabilities": "rec", "score": 0.0}]
    made = utils.aggregate(rows, SimpleNamespace(prompts=SimpleNamespace(kwargs={})))
    assert made.value == 50
    assert {name: part.value for name, part in made.sub_scores["capability"].items()} == {"rec": 50, "ocr": 100}
    assert {name: part.value for name, part in made.sub_scores["capability_set"].items()} == {"rec_ocr": 100, "rec": 0}
    assert "mmvet_judge" in made.notes[0]
