from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from lmms_eval.errors import ItemError
from lmms_eval.tasks.egoschema import utils
from tests.cases import for_each

OPTIONS = [f"{letter}. c washes all of the {thing}." for letter, thing in zip("ABCDE", "abcde", strict=True)]
DOC = {"video_idx": "v", "question_idx": "1", "question": "What?", "option": OPTIONS, "answer": "1"}


def test_the_end_of_the_frame_stands_only_without_options() -> None:
    settings = {"pre_prompt": "P: ", "post_prompt": " END"}
    assert utils.doc_to_text(DOC, settings) == "\n".join(["P: What?", *OPTIONS, utils.INSTRUCTION])
    assert utils.doc_to_text(DOC | {"option": None}, settings) == "P: What? END"


def test_numbers_of_options_are_compared_as_texts() -> None:
    scored = utils.process_results(DOC, ["(B)"])
    told = {"pred": 1, "ground_truth": "1"}
    assert scored == {"submission": {"v": 1}, "score": told, "score_fixed": told}
    assert utils.aggregate([scored["score"], {"pred": 0, "ground_truth": 3}]).value == 0.5
    assert utils.aggregate([]).value is None


def test_options_are_compared_with_their_letters_and_the_fixed_score_without() -> None:
    answers = {
        "c washes all of the d.": 3, "It is c WASHES ALL OF the d": 3,
        "I say that c washes all of the d. is what one sees": 3,
        "one sees how someone cleans what is there": -1,
        "washes the d": -1,  # fewer than six words
    }  # fmt: skip
    drawn = set()
    for answer, fixed in answers.items():
        found = [utils.process_results(DOC | {"question_idx": str(n)}, [answer]) for n in range(20)]
        drawn |= {one["score"]["pred"] for one in found}
        assert {one["score_fixed"]["pred"] for one in found} == {fixed}
    assert drawn == {0, 1, 2, 3, 4}
    letter = utils.process_results(DOC, ["It is D. c washes all of the d."])
    assert letter["score"]["pred"] == letter["score_fixed"]["pred"] == 3


def test_the_likeliest_option() -> None:
    losses = [(2.0, False), (1.0, True), (3.0, False), (2.0, False), (2.0, False)]
    assert utils.process_likelihoods(DOC, losses)["score"]["pred"] == 1
    assert utils.doc_to_choice(DOC)[0] == "c washes all of the a"
    options = ["A. c looks at no. 5. Then c leaves.", "B.c sits", "C. ", "D...", "E. e"]
    assert utils.doc_to_choice(DOC | {"option": options}) == ["c looks at no", "c sits", "", "", "e"]
    with pytest.raises(ItemError, match="each must begin with a letter"):
        utils.doc_to_choice(DOC | {"option": ["c sits"]})


@for_each("option", [None, []])
def test_a_document_without_options_is_named(option: object) -> None:
    with pytest.raises(ItemError, match="egoschema: column 'option'"):
        utils.process_results(DOC | {"option": option}, ["A"])


def test_the_submission_is_one_mapping(tmp_path: Path) -> None:
    made = utils.write_submission([{"v": 1}, {"w": 0}], SimpleNamespace(output_path=str(tmp_path)))
    (file,) = made.details["submission_files"]
    assert Path(file).name.startswith("inference_results_egoschema_MC_2")
    assert json.loads(Path(file).read_text("utf-8")) == {"v": 1, "w": 0}
