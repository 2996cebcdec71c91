import sys
from types import SimpleNamespace

import openpyxl

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import Unscored
from lmms_eval.tasks.mmbench import utils
from lmms_eval.utils.answer_reading import scoring_notes
from tests.cases import for_each

DOC = {
    "index": 3, "question": "What is it", "hint": "nan", "answer": "B", "category": "ocr", "L2-category": "fine",
    "source": "x", "split": "dev", "A": "kite", "B": "lamp", "C": "nan", "D": "cup",
}  # fmt: skip


def test_prompts():
    options = "What is it There are several options:\nA. kite\nB. lamp\nD. cup\n"
    assert utils.doc_to_text(DOC, {}) == options
    assert utils.doc_to_text({**DOC, "hint": "Look."}, {}) == f"Look. {options}"
    assert utils.doc_to_text_cn(DOC, {}) == f"nan {options}"
    assert utils.doc_to_text_cc({**DOC, "hint": "Look."}, {"post_prompt": "!"}) == f"{options}!"


def test_the_judge_is_asked_only_where_there_is_no_letter():
    assert utils.doc_to_judge(DOC, ["B."]) == []
    (asked,) = utils.doc_to_judge(DOC, ["the lamb {x}"])
    assert asked["prompt"].endswith(
        "Question: What is it?\nOptions: There are several options: \nA. kite\nB. lamp\nD. cup\n\n"
        "Answer: the lamb {x}\nLetter: "
    )
    assert asked["reader"]("B") == "B" and asked["reader"]("A or B") is None


@for_each(("reply", "judged"), [("E", "E"), ("lamp", "B"), ("who knows", "no letter"), (None, "no letter")])
def test_what_the_judge_says_stands_in_the_row(reply, judged):
    verdict = Verdict("match", reply, True, "j")
    with scoring_notes() as chance:
        made = utils.process_results(DOC, ["no idea"], {"match": verdict})
    assert made["gpt_eval_score"]["judged"] == judged
    assert chance.drew == (judged == "no letter")
    assert isinstance(made.get("judge"), Unscored) == (reply is None)
    assert "judged" not in made["submission"]


def test_without_a_judge_the_document_is_unscored_but_the_row_is_there():
    made = utils.process_results(DOC, ["no idea"], {})
    assert made["gpt_eval_score"]["judged"] == "no judge"
    assert [value for value in made.values() if isinstance(value, Unscored)] == [
        Unscored("needs a judge: give --judge_model")
    ]


def test_the_judges_text_is_told_where_a_judge_was_asked():
    task = SimpleNamespace(name="mmbench_en_dev", prompts=SimpleNamespace(kwargs={}))
    for verdicts, is_told in (({}, False), ({"match": Verdict("match", "B", True, "j")}, True)):
        row = utils.process_results(DOC, ["no idea"], verdicts)["gpt_eval_score"]
        made = utils.aggregate([row], SimpleNamespace(output_path=None), task)
        assert ("judge_texts" in made.details) == is_told


def test_a_workbook_is_written(tmp_path):
    row = utils.process_results_test(DOC, ["a\x07lamp"])["submission"]
    task = SimpleNamespace(name="mmbench_en_test")
    made = utils.write_submission([row], SimpleNamespace(output_path=str(tmp_path)), task)
    (path,) = made.details["submission_files"]
    assert path.endswith("mmbench_en_test_results.xlsx")
    header, content = openpyxl.load_workbook(path).active.iter_rows(values_only=True)
    assert dict(zip(header, content, strict=True)) == {**row, "prediction": "alamp"}


def test_without_the_library_a_note_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    made = utils.write_submission([], SimpleNamespace(output_path=str(tmp_path)), SimpleNamespace(name="x"))
    assert made.value is None and 'pip install "lmms_eval[xlsx]"' in made.notes[0]
