"""Every metric of texts as a plain task names it: a YAML file without functions, run to a score."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.request import Request, Response
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.writing import RunReport
from lmms_eval.metrics import METRICS, math_answers
from tests.evaluation.kit import Told, config
from tests.tasks.kit import write_rows, write_yaml

SENTENCE = "the cat sat on the mat"
needs_math = pytest.mark.skipif(
    importlib.util.find_spec("math_verify") is None, reason="the package math-verify is not installed"
)
CASES: dict[str, tuple[list[tuple[Any, str]], dict[str, Any], float]] = {
    "anls": ([("colour", "color"), ("red", "green")], {}, (1 - 1 / 6) / 2),
    "bleu": ([(SENTENCE, SENTENCE)] * 2, {}, 100.0),
    "chrf": ([(SENTENCE, SENTENCE)] * 2, {}, 100.0),
    "contains": ([("Paris", "it is PARIS."), ("Paris", "Rome")], {}, 0.5),
    "exact_match": ([("Paris", "paris"), ("Paris", "it is Paris")], {"ignore_case": True}, 0.5),
    "f1": ([("1", "1"), ("0", "1")], {}, 2 / 3),
    "math_verify": ([(r"\frac{1}{2}", "I get 0.5"), ("$x+1$", r"\boxed{x+2}")], {}, 0.5),
    "mcc": ([("1", "1"), ("0", "0")], {}, 1.0),
    "mcq_match": ([("(B)", "The answer is B."), ("C", "b")], {"choices": ["A", "B", "C"]}, 0.5),
    "numeric": ([("1,000", "about 1004 m"), ("2", "2.1")], {"rel_tol": 0.01}, 0.5),
    "ter": ([(SENTENCE, SENTENCE)] * 2, {}, 0.0),
    "wer": ([([SENTENCE], "The cat sat , on the hat"), (["a b", "x y"], "x y")], {}, 1 / 8),
}
"""Per metric: truth and answer of each document, arguments in the YAML file, the score."""


def scored(tmp_path: Path, metric: str) -> RunReport:
    documents, arguments, _ = CASES[metric]
    answers = [answer for _, answer in documents]
    write_yaml(
        tmp_path / "tasks/judged.yaml",
        {
            "task": "judged",
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": {"test": "rows.jsonl"}},
            "test_split": "test",
            "doc_to_text": "Answer.",
            "doc_to_target": "truth",
            "metric_list": [{"metric": metric, **arguments}],
        },
    )
    write_rows(tmp_path / "tasks", [{"truth": truth} for truth, _ in documents])

    def answer(request: Request) -> Response:
        return Response(request.id, text=answers[request.doc_id])

    return run(config(tmp_path, model="told", tasks="judged"), Told(answer))


def test_every_metric_of_texts_is_tried() -> None:
    assert set(CASES) == {
        name for name, entry in METRICS.items() if "generate_until" in entry.output_types and name != "bypass"
    }


@pytest.mark.parametrize(
    "metric", [pytest.param(name, marks=needs_math if name == "math_verify" else ()) for name in CASES]
)
def test_a_plain_task_is_run_to_a_score(tmp_path: Path, metric: str) -> None:
    report = scored(tmp_path, metric)
    assert report.exit_code == 0
    assert report.results["results"]["judged"][f"{metric},none"] == pytest.approx(CASES[metric][2])


def test_mathematics_without_the_package_is_unscored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(math_answers, "_is_installed", lambda: False)
    report = scored(tmp_path, "math_verify")
    assert report.results["results"]["judged"]["math_verify,none"] is None
    outcomes = report.results["outcomes"]["judged"]
    assert (outcomes["unscored"], outcomes["failed"]) == (2, 0)
    assert "pip install 'lmms_eval[math]'" in str(outcomes)
