"""The replay of General-Bench's vectors takes what is right and refuses what was tampered with."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval.tasks.general_bench.levels.tables import template
from tests.cases import for_each
from tests.parity.replay import verdicts, write_lines
from tests.parity.vectors import DATA_DIR
from tests.tasks.general_bench.readers.pixel_files import write_flo, write_flow_png

FLOW = np.array([[[1.5, -2.0], [0.25, 3.0], [0.0, -0.5]], [[-7.0, 1.0], [2.0, 2.5], [-0.75, 64.0]]], dtype=np.float32)


def state(root: Path, path: str, record: dict[str, Any]) -> str:
    write_lines(root, f"general_bench/{path}.jsonl", record)
    (verdict,) = verdicts(root)
    return verdict.state


@for_each(
    ("name", "write"),
    [("read_flow_png_base64", write_flow_png), ("read_flow_flo_base64", write_flo), ("read_flo_base64", write_flo)],
)
def test_flows_are_read_from_files(tmp_path: Path, name: str, write: Any) -> None:
    file = write(tmp_path / ("flow.png" if "png" in name else "flow.flo"), FLOW)
    given = {"fn": name, "input": {"file_base64": base64.b64encode(file.read_bytes()).decode()}}
    file.unlink()
    assert state(tmp_path, "array_metrics", {**given, "expected": {"value": FLOW.tolist()}}) == "passed"
    swapped = FLOW[..., ::-1].tolist()
    assert state(tmp_path, "array_metrics", {**given, "expected": {"value": swapped}}) == "failed"
    assert state(tmp_path, "array_metrics", {**given, "expected": {"error": "AnyError"}}) == "failed"


def test_a_flow_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    given = {"fn": "read_flow_png_base64", "input": {"file_base64": base64.b64encode(b"no picture").decode()}}
    assert state(tmp_path, "array_metrics", {**given, "expected": {"error": "AnyError"}}) == "passed"
    assert state(tmp_path, "array_metrics", {**given, "expected": {"value": []}}) == "failed"


def ranking(cell: float, model: str = "m") -> dict[str, Any]:
    """A full table with the same value in every cell; the ranker stops at a language RMSE of 0."""
    scores = {name: [cell] * len(sheet.rows) for name, sheet in template().sheets.items()}
    return {"column": "M", "model_name": model, "scores": scores, "expected": {"error": "AnyError"}}


@pytest.mark.skipif(not DATA_DIR.is_dir(), reason=f"no specialists' workbook at {DATA_DIR}")
def test_an_expected_error_means_that_the_ranking_is_refused_without_a_table(tmp_path: Path) -> None:
    assert state(tmp_path, "ranker_full", ranking(0)) == "passed"
    assert state(tmp_path, "ranker_full", ranking(40, "another")) == "passed"
    write_lines(tmp_path, "general_bench/ranker_full.jsonl", ranking(40))
    (verdict,) = verdicts(tmp_path)
    assert verdict.state == "failed" and "was not refused: 0" in verdict.detail and "KeyError" not in verdict.detail


def test_a_refusal_is_expected_of_the_corrected_ranking_too(tmp_path: Path) -> None:
    assert state(tmp_path, "ranker_corrected_sota", ranking(0)) == "passed"
    assert state(tmp_path, "ranker_corrected_sota", ranking(40)) == "failed"
