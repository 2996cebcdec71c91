"""Length and position bias of judges over whole runs: in results, in the lines below the table, and in ``show``."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.results.judge_bias import bias_lines
from tests.faults.command import Ended, in_process

DOCUMENTS = 120
UTILS = """
from lmms_eval.api import Unscored


def doc_to_judge(doc, results):
    return [
        {"name": name, "prompt": f"{name} {doc['question']} {results[0]}", "reader": "comparative", "details": details}
        for name, details in (("ab", {"compares": ["a", "b"]}), ("ba", {"compares": ["b", "a"]}))[: doc["orders"]]
    ] + [{"name": "rating", "prompt": f"{doc['question']} {results[0]}", "reader": "score"}]


def process_results(doc, results, verdicts):
    verdict = verdicts.get("rating")
    return {"rating": float(verdict.text) if verdict and verdict.text else Unscored("no judge")}
"""
YAML = """
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {name}.jsonl}}
test_split: train
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
doc_to_judge: !function bias_utils.doc_to_judge
process_results: !function bias_utils.process_results
metric_list:
  - {{metric: rating, aggregation: mean, higher_is_better: true, range: [0, 10]}}
"""


def quality(number: int) -> int:
    return number % 3


def length(number: int) -> int:
    """Twice as long for each step of quality, and eight lengths beyond."""
    return 8 * 2 ** (quality(number) + number * 7 % 8)


def judged(folder: Path, name: str, rise: int, orders: int) -> Ended:
    """Run a task whose judge gives 2 + 2 for quality, some noise, and ``rise`` for each doubling beyond it.

    In every fourth document, the first of two answers wins whatever the order; in the others "a" wins.
    """
    (folder / "bias_utils.py").write_text(UTILS)
    (folder / f"{name}.yaml").write_text(YAML.format(name=name))
    rows, replies = [], []
    for number in range(DOCUMENTS):
        text = "x" * length(number)
        rows.append({"question": f"Question {number}", "answer": text, "orders": orders})
        score = 2 + 2 * quality(number) + rise * (number * 7 % 8) / 4 + (number * 31 % 5) / 5
        place = f"{name}/{number}/judge"
        replies.append({"id": f"{place}/rating/0", "text": str(score)})
        replies.append({"id": f"{place}/ab/0", "text": "8 6"})
        replies.append({"id": f"{place}/ba/0", "text": "7 5" if number % 4 == 0 else "5 7"})
    for file, lines in ((f"{name}.jsonl", rows), (f"{name}_replies.jsonl", replies)):
        (folder / file).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return in_process(
        "--model", "baseline", "--model_args", "strategy=gold", "--tasks", name, "--include_path", folder,
        "--output_path", folder / name, "--log_samples", "--judge_model", f"replay:{folder / f'{name}_replies.jsonl'}",
    )  # fmt: skip


def bias(folder: Path, name: str) -> Any:
    (results,) = (folder / name).rglob("*_results.json")
    return json.loads(results.read_text())["judge_bias"][name]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bias")
    for name, rise, orders in (("fair", 0, 0), ("longer", 2, 2), ("one_order", 0, 1)):
        ended = judged(folder, name, rise, orders)
        assert ended.code == 0, ended.shown
        is_clear = "with each doubling of the answer's length, CI95" in ended.out
        assert is_clear or name != "longer"
    return folder


def labelled(folder: Path, name: str) -> Ended:
    """People see quality alone."""
    table = folder / f"{name}_labels.csv"
    with open(table, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "score"))
        writer.writerows((number, 2 + 2 * quality(number)) for number in range(DOCUMENTS))
    return in_process("score", folder / name, "--human_scores", table)


def test_length_at_equal_human_scores(runs: Path) -> None:
    """Longer answers are better ones, which is no bias; at equal human scores only the biased judge rises."""
    for name in ("fair", "longer"):
        ended = labelled(runs, name)
        assert ended.code == 0, ended.shown
        found = bias(runs, name)
        assert found["metric"] == "rating,none" and found["length"]["n"] == DOCUMENTS
        given = found["length_given_human"]
        is_biased = name == "longer"
        assert (given["low"] > 0) == is_biased and given["method"] == "jackknife"
        assert given["slope"] == pytest.approx(0.5 if is_biased else 0, abs=0.05)
        assert ("doubling of the answer's length at equal human scores" in ended.out) == is_biased


def test_both_orders(runs: Path) -> None:
    found = bias(runs, "longer")["position"]
    assert (found["orders"], found["documents"], found["both_orders"]) == (
        [["a", "b"], ["b", "a"]],
        DOCUMENTS,
        DOCUMENTS,
    )
    assert found["changed"]["value"] == 0.25 and found["changed"]["low"] < 0.25 < found["changed"]["high"]
    assert found["first"]["value"] == pytest.approx(0.25 + 0.75 / 2)
    ended = in_process("show", runs / "longer")
    assert "in 25.0% of 120 documents, CI95 [" in ended.out
    assert "judge's rating changes by" in ended.out


def test_one_order_shows_quality_and_position_together(runs: Path) -> None:
    found = bias(runs, "one_order")["position"]
    assert found["both_orders"] == 0 and "changed" not in found and found["first"]["value"] == 1
    ended = in_process("show", runs / "one_order", "one_order")
    assert "the judge prefers the first answer in 100.0%" in ended.out
    assert "always a, so this holds quality and position together" in ended.out
    assert "position" not in bias(runs, "fair")


def test_lines_without_numbers() -> None:
    none = {"slope": None, "correlation": None, "low": None, "high": None, "n": 3, "reason": "no mean"}
    part = {"task": {"metric": "score,none", "length": none}}
    assert bias_lines(part) == ["task: judge's score by length of the answer: none (no mean)"]
    assert bias_lines(part, "other") == [] == bias_lines(part, only_clear=True)
