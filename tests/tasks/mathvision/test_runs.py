"""Whole runs of the mathematics benchmarks over small data: by rule with the reference answers, and with a judge."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import Request
from lmms_eval.evaluator import simple_evaluate
from lmms_eval.judges.providers import register_script
from tests.tasks.mathvision.test_answers import needs_math


def picture() -> dict[str, Any]:
    held = io.BytesIO()
    Image.new("RGB", (4, 3), "#ff0000").save(held, "PNG")
    return {"bytes": held.getvalue(), "path": "a.png"}


def write(folder: Path, split: str, rows: Sequence[Mapping[str, Any]], image: str) -> None:
    folder.mkdir(parents=True)
    features = json.dumps({"info": {"features": {image: {"_type": "Image"}}}}).encode()
    table = pa.Table.from_pylist(list(rows)).replace_schema_metadata({b"huggingface": features})
    pq.write_table(table, folder / f"{split}-00000-of-00001.parquet")


def saying_one(messages: ChatMessages, request: Request) -> str:
    return "1"


@pytest.fixture
def vision(tmp_path: Path) -> str:
    common = {"question": "How many? <image1>", "image": "a.png", "level": 1, "subject": "counting"}
    rows = [
        {**common, "id": "1", "options": ["1", "2", "3"], "answer": "B", "decoded_image": picture()},
        {**common, "id": "2", "options": [], "answer": "\\frac{1}{2}", "decoded_image": picture()},
        {**common, "id": "3", "options": [], "answer": "(1, 2)", "decoded_image": picture()},
    ]
    write(tmp_path / "MathLLMs" / "MathVision" / "data", "testmini", rows, "decoded_image")
    return str(tmp_path)


@needs_math
def test_the_reference_answers_of_mathvision_get_full_marks(vision: str) -> None:
    found = simple_evaluate(
        model="baseline", model_args="strategy=gold", tasks=["mathvision_testmini"], data_root=vision
    )
    assert found["results"]["mathvision_testmini"]["mathvision_standard_eval,none"] == 100.0


def test_a_judge_scores_mathvision(vision: str) -> None:
    name = "mathvision_reason_testmini"
    told = {"model": "baseline", "model_args": "strategy=gold", "tasks": [name], "data_root": vision}
    alone = simple_evaluate(**told)
    assert alone["outcomes"][name]["unscored"] == 3
    register_script("one", saying_one)
    judged = simple_evaluate(**told, judge_model="scripted:one")
    assert judged["results"][name]["llm_as_judge_eval,none"] == 1.0
    assert judged["judge_texts"][name]["binary_judge"]["authors"] is False


def test_a_judge_scores_mathverse_and_its_parts(tmp_path: Path) -> None:
    row = {
        "question": "q", "answer": "12", "query_wo": "Find x.", "query_cot": "c", "question_for_eval": "Find x.",
        "question_type": "free-form", "metadata": {"split": "testmini", "subfield": "Angle"},
    }  # fmt: skip
    versions = ("Text Lite", "Vision Only")
    rows = [{**row, "sample_index": name, "problem_version": name, "image": picture()} for name in versions]
    write(tmp_path / "CaraJ" / "MathVerse-lmmseval" / "testmini", "testmini", rows, "image")
    register_script("one", saying_one)
    found = simple_evaluate(
        model="baseline", model_args="strategy=gold", tasks=["mathverse_testmini"], data_root=str(tmp_path),
        judge_model="scripted:one",
    )  # fmt: skip
    assert found["results"]["mathverse_testmini"]["gpt_eval_score,none"] == 1.0
    assert set(found["sub_scores"]["mathverse_testmini"]["submission,none"]["problem_version"]) == set(versions)
