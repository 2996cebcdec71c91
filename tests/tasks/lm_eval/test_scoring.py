"""Tests of ``lmms_eval.tasks.lm_eval.scoring``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.task import Answer, TaskOptions
from tests.cases import for_each
from tests.tasks.kit import Function
from tests.tasks.lm_eval.kit import CHOSEN, likelihoods, opened, values

EVERY = [{"metric": name} for name in ("acc", "acc_norm", "acc_bytes", "exact_match", "f1", "mcc")]


def test_metrics_of_choices(tmp_path: Path) -> None:
    rows = [{"q": "x", "options": ["ää", "bbbb"], "label": 0}]
    task = opened(tmp_path, {**CHOSEN, "metric_list": EVERY}, rows=rows)
    # the likelihoods a character are −1.5 and −1, those a byte −0.75 and −1
    found = values(task, 0, likelihoods(-3.0, -4.0, greedy=0))
    assert found == {"acc": 1, "acc_norm": 0, "acc_bytes": 1, "exact_match": 1, "f1": [0, 0], "mcc": [0, 0]}
    assert values(task, 0, likelihoods(-4.0, -4.0))["acc"] == 1, "the first of equal ones"


@for_each(
    ("target", "acc"),
    [(1, 1), ("blue", 1), ([0, 1], 1), (["blue", "none"], 1), (0, 0), ("none", 0), (7, 0), ([7], 0), (-1, 0)],
)
def test_the_right_choices(tmp_path: Path, target: Any, acc: int) -> None:
    task = opened(tmp_path, CHOSEN, rows=[{"q": "x", "options": ["red", "blue"], "label": target}])
    assert values(task, 0, likelihoods(-3.0, -2.0))["acc"] == acc


def test_numbers_of_numpy_name_choices(tmp_path: Path) -> None:
    code = "import numpy\n\ndef right(doc):\n    return numpy.int64(doc['label'])\n"
    task = opened(tmp_path, {**CHOSEN, "doc_to_target": Function("utils.right")}, code)
    assert values(task, 0, likelihoods(-3.0, -2.0))["acc"] == 1
    assert task.score(0, [Answer(likelihoods(-3.0, -2.0))]).target == "1"


def test_an_empty_choice_never_wins_by_length(tmp_path: Path) -> None:
    task = opened(tmp_path, {**CHOSEN, "metric_list": EVERY}, rows=[{"q": "x", "options": ["", "blue"], "label": 1}])
    found = values(task, 0, likelihoods(-0.1, -9.0))
    assert (found["acc"], found["acc_norm"], found["acc_bytes"]) == (0, 1, 1)


def test_mutual_information_and_brier_score(tmp_path: Path) -> None:
    task = opened(tmp_path, {**CHOSEN, "metric_list": [{"metric": "acc_mutual_info"}, {"metric": "brier_score"}]})
    found = values(task, 0, likelihoods(-1.0, -2.0, -1.0, -9.0))
    assert found["acc_mutual_info"] == 1
    gold, probabilities = found["brier_score"]
    assert gold == 1 and probabilities == pytest.approx([1 / (1 + math.exp(-1)), 1 / (1 + math.e)])


def test_functions_of_the_task_get_log_likelihoods(tmp_path: Path) -> None:
    code = "def score(doc, results):\n    return {'first': results[0][0], 'greedy': results[1][1]}\n"
    changes = {**CHOSEN, "process_results": Function("utils.score"), "metric_list": [{"metric": "first"}]}
    assert values(opened(tmp_path, changes, code), 0, likelihoods(-1.5, -2.0, greedy=1)) == {"first": -1.5, "greedy": 1}


@for_each(("answer", "value"), [("blue", 1.0), (" blue", 0.0), ("Blue", 0.0)])
def test_a_generated_answer_is_compared_as_it_is(tmp_path: Path, answer: str, value: float) -> None:
    assert values(opened(tmp_path), 0, answer) == {"exact_match": value}


def test_targets_that_are_no_texts(tmp_path: Path) -> None:
    number = opened(tmp_path / "a", {"doc_to_target": 7})
    assert values(number, 0, "7") == {"exact_match": 1.0} and values(number, 0, "07") == {"exact_match": 0.0}
    choice = opened(tmp_path / "b", {"doc_to_target": "label", "doc_to_choice": "options"})
    assert values(choice, 0, "blue") == {"exact_match": 1.0}
    several = opened(
        tmp_path / "c", {"doc_to_target": "options", "metric_list": [{"metric": "exact_match"}, {"metric": "bleu"}]}
    )
    assert values(several, 0, "red") == {"exact_match": 1.0, "bleu": 1.0}


def test_a_whole_text(tmp_path: Path) -> None:
    changes = {"output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": " ä b", "metric_list": None}
    found = values(opened(tmp_path, changes), 0, likelihoods(-6.0))
    assert found == {"word_perplexity": [-6.0, 3], "byte_perplexity": [-6.0, 5], "bits_per_byte": [-6.0, 5]}


def test_repeats(tmp_path: Path) -> None:
    """The first answer counts; every answer has its own scores, which reducers take."""
    options = TaskOptions(reduce=("mean@2", "maj@3", "pass@3"))
    task = opened(tmp_path, {"repeats": 3}, options=options)
    score = task.score(0, [Answer("red"), Answer("blue"), Answer("blue")]).scores[0]
    assert score.filter == "none" and score.filtered == ["red"]
    assert [one["exact_match"] for one in score.per_answer] == [0.0, 1.0, 1.0]
    assert score.metrics["exact_match"] == 0.0 and score.metrics["exact_match_maj@3"] == 1.0
    assert score.metrics["exact_match_pass@3"] == 1.0


def test_without_scores_only_the_answer_is_kept(tmp_path: Path) -> None:
    task = opened(tmp_path, CHOSEN, options=TaskOptions(predict_only=True))
    assert [metric.name for metric in task.metrics] == ["bypass"]
    assert values(task, 0, likelihoods(-1.0, -2.0)) == {"bypass": [[1], [(-1.0, False), (-2.0, False)]]}
