"""``--check_batch`` with a real model, once where answers cannot depend on their batch and once where they may."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.evaluation.run import run
from tests.evaluation.kit import DOCUMENTS, NAME, config


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_answers_of_a_model_asked_alone(tmp_path: Path, tiny: Path, dtype: str) -> None:
    arguments = f"pretrained={tiny},dtype={dtype},device=cpu,batch_size=3"
    chosen = config(tmp_path, model="hf", model_args=arguments, gen_kwargs="max_new_tokens=4", check_batch=DOCUMENTS)
    check = run(chosen).results["batch_check"]
    assert (check["asked"], check["failed"], check["stopped"]) == (DOCUMENTS, [], "")
    assert bool(check["in_batches"]) is (dtype == "bfloat16") and check["differing"] == len(check["rows"])
    assert dtype == "bfloat16" or not check["rows"]
    assert all(row["request_id"].startswith(f"{NAME}/") and row["recorded"] != row["alone"] for row in check["rows"])
    (journal,) = (tmp_path / "out").rglob("responses-*.jsonl")
    assert len(journal.read_text().splitlines()) == DOCUMENTS
