"""One process does all the work, and says so where several were asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from loguru import logger

from lmms_eval.evaluation import run


@pytest.fixture
def logged() -> Iterator[list[str]]:
    lines: list[str] = []
    handler = logger.add(lines.append, level="WARNING", format="{message}")  # type: ignore[arg-type]
    yield lines
    logger.remove(handler)


@pytest.mark.parametrize("asked", [1, 2])
def test_a_lone_process_of_accelerate_says_so(asked: int, logged: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "no")
    if asked > 1:
        monkeypatch.setenv("MASTER_PORT", "29500")
    assert run._joined.__wrapped__() is None
    assert ["accelerate has started one process" in line for line in logged] == ([True] if asked > 1 else [])
