"""Whole runs of judged benchmarks over a few rows: without a judge, and with one that a script stands for."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, Features, Value
from datasets import Image as Picture
from PIL import Image

from lmms_eval.api.messages import ChatMessages, ChatTextContent
from lmms_eval.api.request import Request
from lmms_eval.evaluator import simple_evaluate
from lmms_eval.judges import register_script

SEEN: list[str] = []
NEEDS = "needs a judge: give --judge_model"


def picture() -> dict[str, Any]:
    content = io.BytesIO()
    Image.new("RGB", (4, 4), "#306090").save(content, "PNG")
    return {"bytes": content.getvalue(), "path": None}


def mmbench(index: int, answer: str) -> dict[str, Any]:
    return {
        "index": index, "question": "What is it", "hint": "nan", "answer": answer, "A": "kite", "B": "lamp",
        "C": "map", "D": "cup", "category": "ocr", "L2-category": "fine", "source": "x", "split": "dev",
    }  # fmt: skip


def hallusion(figure: str) -> dict[str, Any]:
    return {
        "category": "VD", "subcategory": "chart", "visual_input": "1", "set_id": "0", "figure_id": figure,
        "question_id": "0", "question": "Is it?", "gt_answer_details": "It is.", "gt_answer": "1",
    }  # fmt: skip


def mmvet(capability: str) -> dict[str, Any]:
    return {"question_id": capability, "question": "What?", "answer": "red<AND>blue", "capability": capability}


def llava(category: str) -> dict[str, Any]:
    return {"question": "What?", "gpt_answer": "Old.", "category": category, "caption": "A thing."}


CASES: dict[str, Any] = {
    "mmbench_en_dev": (
        "en/dev", [mmbench(0, "B"), mmbench(1, "C")], ["B", "a chart"], "C",
        {"gpt_eval_score": 100, "gpt_eval_score_fixed": 100}, {"gpt_eval_score": 100}, 1,
    ),
    "hallusion_bench_image": (
        "data/image", [hallusion("0"), hallusion("1")], ["yes", "no"], "correct",
        {"aAcc": 100, "fAcc": 100, "qAcc": 100}, {"aAcc": None}, 2,
    ),
    "mmvet": (
        "data/test", [mmvet("ocr"), mmvet("rec,ocr")], ["red", "blue"], "0.5", {"gpt_eval_score": 50},
        {"gpt_eval_score": None}, 2,
    ),
    "llava_in_the_wild": (
        "data/train", [llava("conv"), llava("detail")], ["New.", "Green."], "8 6\nWell.",
        {"gpt_eval_llava_all": 75, "gpt_eval_llava_conv": 75, "gpt_eval_llava_detail": 75},
        {"gpt_eval_llava_all": None}, 2,
    ),
}  # fmt: skip
"""Task: file, rows, answers, the judge's reply, numbers with and without it, documents that need it."""


@pytest.fixture
def run(tmp_path: Path) -> Any:
    def run(name: str, **arguments: Any) -> dict[str, Any]:
        file, rows, answers = CASES[name][:3]
        path = tmp_path / "data" / name / f"{file}-00000-of-00001.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        texts = {column: Value("int64" if column == "index" else "string") for column in rows[0]}
        features = Features({**texts, "image": Picture()})
        Dataset.from_list([{**row, "image": picture()} for row in rows], features=features).to_parquet(path)
        samples = tmp_path / f"samples_{name}.jsonl"
        lines = [json.dumps({"doc_id": number, "resps": [answer]}) for number, answer in enumerate(answers)]
        samples.write_text("\n".join(lines), "utf-8")
        return simple_evaluate(
            model="replay", model_args=f"path={samples}", tasks=[name], data_root=str(tmp_path / "data"), **arguments
        )

    return run


@pytest.mark.parametrize("name", CASES)
def test_without_a_judge_documents_are_unscored(name: str, run: Any) -> None:
    *_, without, waiting = CASES[name]
    results = run(name)
    assert results["outcomes"][name]["unscored"] == waiting
    assert results["outcomes"][name]["failed"] == 0
    assert NEEDS in json.dumps(results["outcomes"][name])
    for metric, value in without.items():
        assert results["results"][name].get(f"{metric},none") == value


@pytest.mark.parametrize("name", CASES)
def test_a_judge_gives_the_numbers_and_its_texts_are_told(name: str, run: Any) -> None:
    *_, reply, numbers, _, waiting = CASES[name]
    SEEN.clear()

    def script(messages: ChatMessages, request: Request) -> str:
        (part,) = messages.messages[0].content
        assert isinstance(part, ChatTextContent)
        SEEN.append(part.text)
        return reply

    register_script("popular", script)
    results = run(name, judge_model="scripted:popular")
    assert len(SEEN) == waiting
    assert results["outcomes"][name]["unscored"] == 0
    for metric, value in numbers.items():
        assert results["results"][name][f"{metric},none"] == value
    for text in results["judge_texts"][name].values():
        assert (text["source"], text["authors"]) == ("built-in", False)
