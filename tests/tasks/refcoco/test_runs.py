"""Whole runs over a picture in the layout of the hub."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.evaluator import simple_evaluate
from lmms_eval.metrics import captions

FEATURES = (
    b'{"info": {"features": {"question_id": {"dtype": "string", "_type": "Value"}, "image": {"_type": "Image"},'
    b' "answer": {"feature": {"dtype": "string", "_type": "Value"}, "_type": "Sequence"},'
    b' "segmentation": {"feature": {"dtype": "float32", "_type": "Value"}, "_type": "Sequence"},'
    b' "bbox": {"feature": {"dtype": "float32", "_type": "Value"}, "_type": "Sequence"}}}}'
)


@pytest.fixture
def data_root(tmp_path: Path) -> str:
    held = io.BytesIO()
    Image.new("RGB", (20, 10)).save(held, "PNG")
    row = {
        "question_id": "1", "image": {"bytes": held.getvalue(), "path": None}, "answer": ["left cup", "the red one"],
        "segmentation": [2.0, 2.0, 10.0, 2.0, 10.0, 8.0], "bbox": [2.0, 2.0, 8.0, 6.0],
    }  # fmt: skip
    folder = tmp_path / "lmms-lab-encoder" / "RefCOCO" / "data"
    folder.mkdir(parents=True)
    rows = [row, {**row, "question_id": "2", "answer": ["a small blue bowl here"]}]
    floats = pa.list_(pa.float32())
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    kinds = {"question_id": pa.string(), "image": image, "answer": pa.list_(pa.string())}
    schema = pa.schema({**kinds, "segmentation": floats, "bbox": floats}, {b"huggingface": FEATURES})
    pq.write_table(pa.Table.from_pylist(rows, schema), folder / "val-00000-of-00001.parquet")
    return str(tmp_path)


def run(task: str, data_root: str) -> dict[str, Any]:
    made = simple_evaluate(tasks=[task], model="baseline", model_args="strategy=gold", data_root=data_root)
    assert made["outcomes"][task]["failed"] == 0
    numbers: dict[str, Any] = made["results"][task]
    return numbers


def test_right_boxes_have_full_marks(data_root: str) -> None:
    found = run("refcoco_bbox_rec_val", data_root)
    assert found["refcoco_IoU,none"] == pytest.approx(1.0)
    assert found["refcoco_ACC@0.9,none"] == found["refcoco_Center_ACC,none"] == 1.0


@pytest.mark.skipif(shutil.which("java") is None, reason="the toolkit's tokenizer needs Java")
def test_where_meteor_fails_the_other_metrics_of_captions_are_given(
    data_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(scored: Any) -> Any:
        raise NotEvaluated(f"METEOR failed for {len(scored)}")

    monkeypatch.setattr(captions, "meteor", failing)
    found = run("refcoco_seg_val", data_root)
    assert found["refcoco_Bleu_1,none"] == pytest.approx(1.0)
    assert found["refcoco_CIDEr,none"] > 1.0
    assert found["refcoco_METEOR,none"] is None
