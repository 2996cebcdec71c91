"""The rules by which tasks read answers, as the audit tells them; scores are tested with each task."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.judging import Verdict
from lmms_eval.filters import FILTERS, get_filter
from lmms_eval.results import load
from lmms_eval.results.audit import audit
from lmms_eval.utils.answer_reading import AnswerReading, scoring_notes
from tests.cases import for_each
from tests.viewer.conftest import run_task, write_task

OPTIONS = {"A": "a red kite", "B": "a heron", "C": "a swift", "D": "an owl"}
AIR = {f"choice_{letter.lower()}": text for letter, text in OPTIONS.items()} | {
    "answer_gt": "a heron", "uniq_id": 1, "task_name": "birds",
}  # fmt: skip
MMAU = {"choices": '["a", "b", "c", "d"]', "answer": "b", "id": "1", "task": "sound"}
EGOSCHEMA = {"option": [f"{letter}. {text}" for letter, text in OPTIONS.items()], "answer": 1} | {
    "video_idx": "v", "question_idx": 0,
}  # fmt: skip
NEXTQA = {f"a{number}": text for number, text in enumerate((*OPTIONS.values(), "none"))} | {
    "answer": 1, "video": 7, "qid": 3,
}  # fmt: skip
SEED = {"answer": "B", "question_id": 1, "data_type": "image"}
SCIENCE = {"choices": list(OPTIONS.values()), "answer": 1}
MME = {"answer": "Yes", "category": "count", "question_id": "1"}
POPE = {"answer": "yes", "question_id": "1"}
MATHVISION = {"answer": "4", "options": []}
LONG = "It is hard to say but probably a heron here"


@pytest.mark.parametrize(
    ("task", "doc", "answer", "rule", "found"),
    [
        ("air_bench", AIR, "B", "letter alone", "B"),
        ("air_bench", AIR, "(B) or (C)", "letter in parentheses", "BC"),
        ("air_bench", AIR, "it is B here", "letter between blanks", "B"),
        ("air_bench", AIR, LONG, "drawn at random", ""),
        ("mmau", MMAU, "(B) b", "letter in parentheses", "B"),
        ("mmau", MMAU, "no idea", "drawn at random", ""),
        ("egoschema", EGOSCHEMA, "B.", "letter alone", "B"),
        ("egoschema", EGOSCHEMA, "I mean B. a heron", "letter before a full stop", "B"),
        ("egoschema", EGOSCHEMA, LONG, "drawn at random", ""),  # options are compared with their letters
        ("egoschema", EGOSCHEMA, "So B. a heron it is", "letter before a full stop", "B"),
        ("egoschema", EGOSCHEMA, "no idea", "drawn at random", ""),
        ("nextqa", NEXTQA, "(B)", "letter in parentheses", "B"),
        ("nextqa", NEXTQA, "B or C maybe", "letter before a blank", "BC"),
        ("nextqa", NEXTQA, LONG, "text of an option", "B"),
        ("nextqa", NEXTQA, "no idea", "drawn at random", ""),
        ("realworldqa", {"answer": "B"}, "the answer is B since", "letter after a phrase", "B"),
        ("realworldqa", {"answer": "B"}, "no idea", "nothing found", ""),
        ("realworldqa", {"answer": "two"}, "2", "whole answer", ""),
        ("seedbench", SEED, "B. a heron", "first character", "B"),
        ("seedbench", SEED, "The heron", "nothing found", ""),
        ("scienceqa", SCIENCE, "b", "letter alone", "b"),
        ("scienceqa", SCIENCE, "B. a heron", "letter before a full stop", "B"),
        ("scienceqa", SCIENCE, "", "nothing found", ""),
        ("scienceqa", SCIENCE, "AB", "nothing found", ""),
        ("pope", POPE, "Yes", "word alone", ["yes"]),
        ("pope", POPE, "Yes, there is", "nothing found", ""),
        ("mme", MME, "Yes.", "word alone", ["yes"]),
        ("mme", MME, "No, there is none", "first four characters", ["no"]),
        ("mme", MME, "y", "letter alone", ["yes"]),
        ("mme", MME, "There is", "nothing found", ""),
        ("mathvision", MATHVISION, "thus \\boxed{4}.", "box", "4"),
        ("mathvision", MATHVISION, "so it is 4.", "what is stated", "4"),
        ("mathvision", MATHVISION, "I think (B).", "letter at an end", "b"),
        ("mathvision", MATHVISION, "4", "whole answer", "4"),
        ("mathvision", MATHVISION, " ", "nothing found", ""),
    ],
)  # fmt: skip
def test_rules(task: str, doc: dict[str, Any], answer: str, rule: str, found: Any) -> None:
    if task == "mathvision":
        pytest.importorskip("latex2sympy2_extended", reason="answers in LaTeX are read by the extra math")
    utils = importlib.import_module(f"lmms_eval.tasks.{task}.utils")
    with scoring_notes() as notes:
        utils.process_results(doc, [answer])
    assert notes.reading == AnswerReading(rule, tuple(found))


@for_each(
    ("reply", "rule"),
    [("1", "judge's reply alone"), ("It is 0.", "first 0 or 1 of the judge's reply"), ("right", "nothing found")],
)
def test_replies_of_a_judge(reply: str, rule: str) -> None:
    utils = importlib.import_module("lmms_eval.tasks.mathverse.utils")
    with scoring_notes() as notes:
        utils.process_results({"answer": "4"}, ["four"], {"binary": Verdict("binary", reply, True, "judge")})
    assert notes.reading.rule == rule


@for_each(
    ("name", "arguments", "answer", "doc", "rule", "found"),
    [
        ("regex", {"regex_pattern": "#### ([0-9]+)"}, "#### 4 #### 5", {}, "first match", "4"),
        ("regex", {"regex_pattern": "[0-9]+", "group_select": -1}, "4 or 5", {}, "last match", "5"),
        ("regex", {"regex_pattern": "[0-9]+"}, "four", {}, "nothing found", ""),
        ("option_letter", {}, "B. a heron", {}, "letter before a full stop", "B"),
        ("option_letter", {}, "b", {}, "letter alone", "b"),
        ("option_letter", {}, "It is B", {}, "nothing found", ""),
        ("multi_choice_regex", {"regex_pattern": r"\([A-D]\)"}, "(B)", {"choices": ["x", "y"]}, "first match", ["(B)"]),
        ("multi_choice_regex", {}, "it is y", {"choices": ["x", "y"]}, "text of an option", "y"),
        ("multi_choice_regex", {}, "it: A", {"choices": ["x", "y"]}, "letter after a colon", "A"),
    ],
)  # fmt: skip
def test_filters(name: str, arguments: dict[str, Any], answer: str, doc: Any, rule: str, found: Any) -> None:
    assert name in FILTERS
    with scoring_notes() as notes:
        get_filter(name)(**arguments).apply([[answer]], [doc])
    assert notes.reading == AnswerReading(rule, tuple(found))


def test_the_audit_of_a_run_tells_rules(tmp_path: Path) -> None:
    answers = ["#### 4", "#### 4 #### 5", "four"]
    rows = [{"question": "How many?", "answer": text, "media": []} for text in answers]
    folder = write_task(tmp_path / "task", rows)
    with open(folder / "quiz.yaml", "a") as yaml:
        yaml.write(
            "filter_list:\n"
            "  - {name: strict, filter: [{function: regex}, {function: take_first}]}\n"
            "  - {name: last, filter: [{function: regex, group_select: -1}, {function: take_first}]}\n"
        )
    run = load(run_task(folder, tmp_path / "out", "strategy=gold"))
    strict, last = audit(run, run.task("quiz"))
    assert strict.rules == {"rule": {"first match": 2, "nothing found": 1}}
    assert last.rules == {"rule": {"last match": 2, "nothing found": 1}}
    assert (strict.told, strict.unparsed, strict.ambiguous) == (3, 1, 0)
    assert [one.record["answer_reading"]["extracted"] for one in run.task("quiz").samples()][:2] == [["4"], ["4"]]
