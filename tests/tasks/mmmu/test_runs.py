"""Whole runs over two questions: letters that are drawn, several answers, a judge that a script stands for."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, Features, Value
from datasets import Image as Picture
from PIL import Image

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import Request
from lmms_eval.evaluator import simple_evaluate
from lmms_eval.judges import register_script

COLUMNS = ("id", "question", "options", "answer", "question_type")
ROWS = [
    ("validation_Art_1", "<image 1>?", "['cat', 'dog']", "B", "multiple-choice"),
    ("validation_Math_2", "How many in <image 1>?", "[]", "12", "open"),
]


@pytest.fixture
def run(tmp_path: Path) -> Any:
    content = io.BytesIO()
    Image.new("RGB", (4, 4)).save(content, "PNG")
    picture = {"bytes": content.getvalue(), "path": None}
    rows = [dict(zip(COLUMNS, row, strict=True)) | {"image_1": picture} for row in ROWS]
    features = Features({**dict.fromkeys(COLUMNS, Value("string")), "image_1": Picture()})
    path = tmp_path / "data" / "MMMU" / "data" / "validation-00000-of-00001.parquet"
    path.parent.mkdir(parents=True)
    Dataset.from_list(rows, features=features).to_parquet(path)

    def run(name: str, answers: list[list[str]], **arguments: Any) -> dict[str, Any]:
        samples = tmp_path / f"samples_{name}.jsonl"
        lines = [json.dumps({"doc_id": number, "resps": said}) for number, said in enumerate(answers)]
        samples.write_text("\n".join(lines), "utf-8")
        return simple_evaluate(
            model="replay", model_args=f"path={samples}", tasks=[name], data_root=str(tmp_path / "data"), **arguments
        )

    return run


def test_the_score_without_drawn_letters_stands_beside_their_number(run: Any) -> None:
    outcome = run("mmmu_val", [["no idea"], ["It is 12."]])["outcomes"]["mmmu_val"]
    assert outcome["drew"] == 1
    assert {name: (one["value"], one["n"]) for name, one in outcome["undrawn"].items()} == {
        "mmmu_acc,none": (1.0, 1), "mmmu_acc_reference,none": (0.0, 1),
    }  # fmt: skip


def test_of_many_answers_the_most_frequent_or_any(run: Any) -> None:
    choice = ["(A)"] * 7 + ["(B)"] + ["(A)"] * 56
    results = run("mmmu_val_pass64", [choice, ["12"] * 64])["results"]["mmmu_val_pass64"]
    found = {name: results[f"mmmu_acc,{name}"] for name in ("maj@64", "maj@8", "pass@64", "pass@8")}
    assert found == {"maj@64": 0.5, "maj@8": 0.5, "pass@64": 1.0, "pass@8": 1.0}


def test_pass_at_all_answers_is_the_pipeline_of_any_right_one(run: Any) -> None:
    answers = [["(A)"] * 7 + ["(B)"], ["12"] * 8]
    found = run("mmmu_val", answers, repeats=8, reduce="pass@8,pass@2")["results"]["mmmu_val"]
    by_pipeline = run("mmmu_val_pass64", [one * 8 for one in answers])["results"]["mmmu_val_pass64"]
    assert found["mmmu_acc_pass@8,none"] == by_pipeline["mmmu_acc,pass@8"] == 1.0
    assert found["mmmu_acc_pass@2,none"] == (2 / 8 + 1.0) / 2  # of one right answer among eight


def test_a_judge_scores_answers_with_reasoning(run: Any) -> None:
    def script(messages: ChatMessages, request: Request) -> str:
        text = "".join(getattr(part, "text", "") for part in messages.messages[0].content)
        return "1" if "<<<\nB\n>>>" in text else "0 (not 1)"

    answers = [["<think>A?</think><answer>B</answer>"], ["13"]]
    without = run("mmmu_val_reasoning", answers)
    assert without["outcomes"]["mmmu_val_reasoning"]["unscored"] == 2
    register_script("mmmu", script)
    judged = run("mmmu_val_reasoning", answers, judge_model="scripted:mmmu")
    numbers = judged["results"]["mmmu_val_reasoning"]
    assert (numbers["llm_as_judge_eval,none"], numbers["llm_as_judge_eval_fixed,none"]) == (1.0, 0.5)
    assert judged["judge_texts"]["mmmu_val_reasoning"]["binary_judge"]["source"] == "built-in"
