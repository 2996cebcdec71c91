from __future__ import annotations

import pytest

from lmms_eval.errors import DataError, ItemError
from lmms_eval.metrics import math_answers
from lmms_eval.tasks._task_utils.scoring_data import identity_of
from lmms_eval.tasks.mathvision.utils import aggregate, doc_to_judge, process_results

DOC = {"question": "How many?", "options": ["1", "2", "3", "4", "5"], "answer": "B", "subject": "counting", "level": 2}


def test_a_letter_that_names_no_option_fails_its_problem() -> None:
    with pytest.raises(ItemError, match="'F'"):
        process_results({**DOC, "answer": "F"}, ["B"])


def test_without_the_reader_the_run_ends_before_the_model_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: str) -> str:
        raise math_answers.importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(math_answers.importlib.metadata, "version", absent)
    with pytest.raises(DataError, match=r"lmms_eval\[math\]"):
        identity_of(process_results, {})


def test_the_judge_does_not_see_thoughts() -> None:
    (question,) = doc_to_judge(DOC, ["<think>secret</think> <thinking>hidden</thinking> B"])
    assert "secret" not in question["prompt"] and "hidden" not in question["prompt"]
    (question,) = doc_to_judge(DOC, ["<think>" * 20_000])  # never closed: it takes no time
    assert "<think>" in question["prompt"]


def test_percent_and_parts() -> None:
    scored = ((True, "a"), (True, "b"), (False, "b"))
    rows = [{"response": [""], "scores": [right], "subject": name} for right, name in scored]
    found = aggregate(rows)
    assert found.value == 66.67
    assert {name: one.value for name, one in found.sub_scores["subject"].items()} == {"a": 100.0, "b": 50.0}
    assert aggregate([]).value is None
