from types import SimpleNamespace

import pytest

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import Unscored
from lmms_eval.errors import ItemError
from lmms_eval.tasks.hallusion_bench import utils
from tests.cases import for_each

TASK = SimpleNamespace(is_judged=True, prompts=SimpleNamespace(kwargs={}))
DOC = {
    "category": "VD", "subcategory": "chart", "visual_input": "1", "set_id": "0", "figure_id": "1", "question_id": "0",
    "question": "Is it?", "gt_answer_details": "It is.", "gt_answer": "1", "image": object(),
}  # fmt: skip


def row(mark, **columns):
    doc = {**DOC, **columns}
    verdict = Verdict("agreement", {0: "incorrect", 1: "Correct.", 2: "?"}.get(mark), True, "j")
    return utils.process_results(doc, ["yes"], {"agreement": verdict})["aAcc"]


def test_replies():
    assert [utils.read(reply) for reply in ("Incorrect", "“correct”", "not correct", "unclear", "")] == [0, 1, 1, 2, 2]


def test_an_unclear_answer_is_right_only_without_a_figure():
    blind = {"category": "VS", "figure_id": "0"}
    rows = [row(2), row(2, **blind), row(1, question_id="1"), row(0, question_id="2", **blind)]
    made = utils.aggregate_all(rows, TASK)
    assert made.value == 50
    assert made.details["hallusion_bench_all_questions"]["correct"] == 2
    assert "hallusion_judge" in made.notes[-1]


def test_figures_and_questions_need_every_answer_right():
    rows = [row(1), row(0, question_id="1"), row(1, figure_id="2"), row(1, category="VS", figure_id="0")]
    figures = utils.aggregate_figures(rows, TASK)
    assert (figures.value, figures.details["hallusion_bench_figures"]["inconsistent"]) == (50, 1)
    assert utils.aggregate_questions(rows, TASK).value == round(100 * 2 / 3, 4)


def test_a_lost_reply_is_unclear_and_counted():
    made = utils.aggregate_all([row(None)], TASK)
    assert made.value == 0
    assert made.notes[0] == "failed: 1 of 1 answers got no reply of the judge and count as unclear"


def test_two_documents_of_one_name_are_refused():
    with pytest.raises(ItemError, match="must name one document"):
        utils.aggregate_all([row(1), row(1)], TASK)


def test_without_a_judge():
    assert set(utils.process_results(DOC, ["yes"], {}).values()) == {Unscored("needs a judge: give --judge_model")}
    marks = [utils.process_results_static(DOC, [answer])["aAcc"]["mark"] for answer in ("Yes, it is.", "", "否", "y")]
    assert marks == [1, 0, 0, 0]
    assert utils.process_results_static(DOC, [utils.doc_to_gold(DOC)])["aAcc"]["mark"] == 1
    with pytest.raises(ItemError, match="'gt_answer' holds 'x'"):
        utils.process_results_static({**DOC, "gt_answer": "x"}, ["yes"])


def test_numbers_in_the_place_of_texts_are_the_same():
    names = ("visual_input", "set_id", "figure_id", "question_id", "gt_answer")
    for category in ("VD", "VS"):
        for figure in ("0", "1"):
            texts = {**DOC, "category": category, "figure_id": figure}
            numbers = {**texts, **{name: int(texts[name]) for name in names}}
            for mark in (0, 1, 2):
                said = {0: "incorrect", 1: "correct", 2: "?"}[mark]
                verdict = {"agreement": Verdict("agreement", said, True, "j")}
                rows = [utils.process_results(doc, ["yes"], verdict)["aAcc"] for doc in (texts, numbers)]
                made = [utils.aggregate_all([row], TASK) for row in rows]
                assert made[0] == made[1]
            assert utils.process_results_static(numbers, ["yes"])["aAcc"]["mark"] == utils.RIGHT
            assert utils.doc_to_gold(numbers) == "Yes. It is."


@for_each(("column", "held"), [
    ("figure_id", 1.0), ("gt_answer", True), ("visual_input", None), ("set_id", ["0"]),
])  # fmt: skip
def test_other_types_are_refused_by_column_and_type(column, held):
    with pytest.raises(
        ItemError, match=rf"column '{column}' holds .*\({type(held).__name__}\): it must be a text or a"
    ):
        utils.process_results_static({**DOC, column: held}, ["yes"])
