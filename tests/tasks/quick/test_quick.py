"""The quick sample: a whole run over small copies of its twelve data sets."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.task import TaskOptions
from lmms_eval.evaluator import simple_evaluate
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.quick.utils import ocrbench_results, pope_results
from lmms_eval.tasks.selection import select_tasks

ROWS = 40
OF_TEN = ["blue"] * 10
PLACES: dict[str, tuple[str, dict[str, Any]]] = {
    "ai2d/test": ("image", {"question": "q", "options": ["x", "y"], "answer": "1"}),
    "ChartQA/test": ("image", {"type": "human_test", "question": "q", "answer": "3"}),
    "DocVQA/DocVQA/validation": ("image", {"questionId": "1", "question": "q", "answers": ["blue"]}),
    "DocVQA/InfographicVQA/validation": ("image", {"questionId": "1", "question": "q", "answers": ["blue"]}),
    "GQA/testdev_balanced_instructions/testdev": ("image", {"id": "1", "question": "q", "answer": "blue"}),
    "MUIRBENCH/test": (
        "image_list",
        {"idx": "1", "task": "t", "image_relation": "r", "image_type": "k", "question": "q", "options": ["x", "y"],
         "answer": "B"},
    ),
    "OCRBench/test": (
        "image", {"dataset": "d", "question": "q", "question_type": "Doc-oriented VQA", "answer": ["blue"]},
    ),
    "OK-VQA/val2014": ("image", {"question_id": "1", "question": "q", "answers": OF_TEN}),
    "POPE/test": ("image", {"question_id": "1", "question": "q", "answer": "yes", "category": "c"}),
    "ScienceQA/ScienceQA-IMG/test": ("image", {"question": "q", "choices": ["x", "y"], "answer": 1, "hint": ""}),
    "textvqa/validation": (
        "image", {"image_id": "1", "question_id": 1, "question": "q", "answers": OF_TEN, "ocr_tokens": ["t"]},
    ),
    "VizWiz-VQA/val": ("image", {"question_id": "1", "question": "q", "answers": OF_TEN, "category": "c"}),
}  # fmt: skip
"""Below a data root: the column of pictures, and a row."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from PIL import Image

    shown = []
    for number in range(ROWS):
        target = io.BytesIO()
        Image.new("RGB", (2, 2), (number, 0, 0)).save(target, "PNG")
        shown.append({"bytes": target.getvalue(), "path": None})
    for place, (column, row) in PLACES.items():
        is_list = column == "image_list"
        rows = [{**row, column: [one] if is_list else one, **_id_of(row, number)} for number, one in enumerate(shown)]
        file = tmp_path / "root" / f"{place}-00000-of-00001.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        feature: Any = {"_type": "Image"}
        features = {column: [feature] if is_list else feature}
        table = pa.Table.from_pylist(rows)
        described = json.dumps({"info": {"features": features}})
        pq.write_table(table.replace_schema_metadata({"huggingface": described}), file)
    return tmp_path / "root"


def _id_of(row: dict[str, Any], number: int) -> dict[str, str]:
    return {"image_id": str(number)} if "image_id" in row else {}


def test_a_run_gives_one_number_with_its_interval(root: Path) -> None:
    found = simple_evaluate(tasks=["quick"], model="baseline", model_args="strategy=gold", data_root=str(root))
    counts = found["n-samples"]
    assert sum(count["effective"] for count in counts.values()) == 200
    assert {count["original"] for count in counts.values()} == {ROWS}
    row = found["results"]["quick"]
    assert row["quick_score,none"] == 100.0 and row["quick_score_stderr,none"] == 0.0
    assert found["configs"]["quick_pope"]["sample"] == {"size": 17, "seed": 1}


def test_the_parts_add_up_to_200_documents_and_name_bounded_metrics() -> None:
    chosen = select_tasks(["quick"], Catalogue(), TaskOptions())
    assert sum(task.sample.size for task in chosen.tasks if task.sample is not None) == 200
    ((metric,),) = (group.metrics for group in chosen.groups)
    assert {task.name for task in chosen.tasks} == set(metric.of)
    for task in chosen.tasks:
        name, _, pipeline = metric.of[task.name].partition(",")
        (within,) = (one.score_range for one in task.metrics if one.name == name)
        assert pipeline in task.pipelines
        assert within is not None and (within.low, within.high) == (0, 1)


def test_strata_that_are_all_right_or_all_wrong_leave_an_interval(root: Path) -> None:
    found = simple_evaluate(
        tasks=["quick"], model="baseline", model_args="strategy=constant,text=B", data_root=str(root)
    )
    row = found["results"]["quick"]
    assert (row["quick_score,none"], row["quick_score_stderr,none"]) == (25.0, 0.0)
    low, high = (found["intervals"]["quick"]["quick_score,none"][end] for end in ("low", "high"))
    assert 15 < low < 25 < high < 40


def test_a_score_is_that_of_the_benchmark() -> None:
    doc = {"dataset": "d", "question_type": "Doc-oriented VQA", "answer": ["blue"]}
    assert ocrbench_results(doc, ["It is Blue."]) == {"ocrbench_accuracy": 1.0}
    assert pope_results({"question_id": 1, "answer": "Yes"}, ["Yes."]) == {"pope_accuracy": 0.0}
