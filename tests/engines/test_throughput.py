"""Throughput of ``--model vllm`` against a bare ``LLM.generate`` on the same prompts."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.gpu.vllm import against_vllm
from benchmarks.gpu.workloads import Scale, write
from tests.engines.models import ENGINE

SCALE = Scale(samples=48, tokens=24, picture=(8, 8), frames=2, words=60)
LEAST = 0.95


@pytest.mark.slow
def test_no_slower_than_a_bare_engine(smol: Path, tmp_path: Path) -> None:
    write(tmp_path, "text", "text", SCALE)
    found = against_vllm(smol, tmp_path, "text", SCALE, **ENGINE)
    print(found)
    assert found["questions"] == SCALE.samples
    assert found["ratio_wall"] >= LEAST
