"""Samples whose score chance took part in are marked, from the task's code to the line below the table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.request import Request, Response
from lmms_eval.api.task import Answer
from lmms_eval.evaluation.run import run
from tests.cases import for_each
from tests.evaluation.kit import Told, config
from tests.tasks.kit import Function, loaded, write_rows, write_yaml

PARSED = """
from lmms_eval.tasks._task_utils.mmmu_mcq_utils import parse_mmmu_multi_choice_response

def process(doc, results):
    letter = parse_mmmu_multi_choice_response(results[0], ["A", "B"], {"A": "red", "B": "blue"})
    return {"exact_match": float(letter == "A")}
"""
OWN = """
import random

def process(doc, results):
    said = results[0]
    return {"exact_match": float((said if said in ("A", "B") else random.choice("AB")) == "A")}
"""
NUMPY = """
import numpy as np

def process(doc, results):
    said = results[0]
    return {"exact_match": float((said if said in ("A", "B") else np.random.choice(["A", "B"])) == "A")}
"""
SCORED = {"process_results": Function("utils.process")}


@for_each("code", [PARSED, OWN, NUMPY])
@for_each(("said", "drew"), [("A", False), ("hm", True)])
def test_a_score_that_chance_took_part_in(tmp_path: Path, code: str, said: str, drew: bool) -> None:
    score = loaded(tmp_path, SCORED, code).score(0, [Answer(said)]).scores[0]
    assert score.drew is drew


def test_of_two_pipelines_the_one_that_drew(tmp_path: Path) -> None:
    letters = [{"function": "regex", "regex_pattern": "(A)$"}, {"function": "take_first"}]
    filters = [{"name": "raw", "filter": [{"function": "take_first"}]}, {"name": "last", "filter": letters}]
    task = loaded(tmp_path, {**SCORED, "filter_list": filters}, OWN)
    assert [score.drew for score in task.score(0, [Answer("so: A")]).scores] == [True, False]


def samples(out: Path) -> list[dict[str, Any]]:
    (path,) = out.rglob("*_samples_guess.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("scoring", ["inline", "process"])
def test_samples_results_and_the_line_below_the_table(tmp_path: Path, scoring: str) -> None:
    folder = tmp_path / "tasks"
    keys = {
        "task": "guess", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": "rows.jsonl"}},
        "test_split": "test", "doc_to_text": "question", "doc_to_target": "answer", "scoring": scoring, **SCORED,
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    }  # fmt: skip
    write_yaml(folder / "guess.yaml", keys)
    (folder / "utils.py").write_text(PARSED, encoding="utf-8")
    write_rows(folder, [{"question": "q", "answer": "A"}] * 3)

    def answer(request: Request) -> Response:
        return Response(request.id, text="(B)" if request.doc_id else "none of them")

    report = run(config(tmp_path, model="told", tasks="guess", log_samples=True), Told(answer))
    assert [row.get("drew") for row in samples(tmp_path / "out")] == [True, None, None]
    assert report.results["outcomes"]["guess"]["drew"] == 1
    lines = [line for line in report.lines if "drew at random" in line]
    assert lines == [
        "guess: scoring drew at random for 1 of 3 documents (33.3%; drew in the samples file), as it does for answers "
        "that name no choice"
    ]
    assert report.results["outcomes"]["guess"]["undrawn"] == {"exact_match,none": {"value": 0.0, "n": 2, "stderr": 0.0}}
    assert "  without them exact_match is 0.0000 (2 documents)" in report.lines


def test_an_aggregation_of_the_tasks_own_tells_the_scores_of_its_mean(tmp_path: Path) -> None:
    folder = tmp_path / "tasks"
    keys = {
        "task": "guess", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": "rows.jsonl"}},
        "test_split": "test", "doc_to_text": "question", "doc_to_target": "answer", **SCORED,
        "metric_list": [{"metric": "exact_match", "aggregation": Function("utils.aggregate")}],
    }  # fmt: skip
    write_yaml(folder / "guess.yaml", keys)
    (folder / "utils.py").write_text(
        PARSED.replace('float(letter == "A")', '{"right": letter == "A"}')
        + """
from lmms_eval.tasks._task_utils.estimates import mean

def aggregate(results):
    return mean([float(result["right"]) for result in results], 100.0)
""",
        encoding="utf-8",
    )
    write_rows(folder, [{"question": "q", "answer": "A"}] * 4)

    def answer(request: Request) -> Response:
        return Response(request.id, text=("(B)", "none of them", "(A)", "(A)")[request.doc_id])

    report = run(config(tmp_path, model="told", tasks="guess"), Told(answer))
    told = report.results["outcomes"]["guess"]["undrawn"]["exact_match,none"]
    assert (told["value"], told["n"]) == (pytest.approx(200 / 3), 3)


def test_where_chance_had_a_part_in_all_documents_nothing_stands_beside_the_number(tmp_path: Path) -> None:
    folder = tmp_path / "tasks"
    keys = {
        "task": "guess", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": "rows.jsonl"}},
        "test_split": "test", "doc_to_text": "question", "doc_to_target": "answer", **SCORED,
        "metric_list": [{"metric": "exact_match", "aggregation": "mean"}],
    }  # fmt: skip
    write_yaml(folder / "guess.yaml", keys)
    (folder / "utils.py").write_text(PARSED, encoding="utf-8")
    write_rows(folder, [{"question": "q", "answer": "A"}] * 2)
    all_drawn = run(config(tmp_path, model="told", tasks="guess"), Told(lambda one: Response(one.id, text="hm")))
    assert all_drawn.results["outcomes"]["guess"]["drew"] == 2
    assert "undrawn" not in all_drawn.results["outcomes"]["guess"]
