"""GSM8K: the reference solutions get full marks, by both filters."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lmms_eval.evaluator import simple_evaluate

ROWS = [
    {"question": f"Tom has {number} marbles and buys 2 more. How many?", "answer": f"He counts.\n#### {number + 2:,}"}
    for number in (1, 5, 1198, 70)
]


@pytest.fixture
def data_root(tmp_path: Path) -> str:
    folder = tmp_path / "gsm8k" / "main"
    folder.mkdir(parents=True)
    for split in ("train", "test"):
        pq.write_table(pa.Table.from_pylist(ROWS * 2), folder / f"{split}-00000-of-00001.parquet")
    return str(tmp_path)


@pytest.mark.parametrize("name", ["gsm8k", "gsm8k_cot_zeroshot"])
def test_the_reference_solutions_get_full_marks(name: str, data_root: str) -> None:
    found = simple_evaluate(model="baseline", model_args="strategy=gold", tasks=[name], data_root=data_root)
    results = found["results"][name]
    assert results["exact_match,strict-match"] == results["exact_match,flexible-extract"] == 1.0
    assert found["n-shot"][name] == (5 if name == "gsm8k" else 0)
