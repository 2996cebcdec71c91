from __future__ import annotations

import asyncio
from typing import Any

from lmms_eval.server.mcp.answers import LONGEST_TEXT, MOST_BYTES, GetRunResult
from lmms_eval.server.mcp.toolbox import Page, read_samples


class _Tasks:
    """Tasks with so many samples each."""

    def __init__(self, text: str = "", **counts: int) -> None:
        self._text, self._counts = text, counts

    async def samples(self, _job: str, task: str, offset: int, limit: int) -> dict[str, Any]:
        total = self._counts[task]
        numbers = range(offset, min(offset + limit, total))
        return {"task": task, "total": total, "samples": [{"doc_id": number, "a": self._text} for number in numbers]}


def _read(tasks: _Tasks, names: str, limit: int = 100, offset: int = 0) -> Page:
    asked = GetRunResult(run_id="r", include_samples=True, sample_limit=limit, sample_offset=offset)
    return asyncio.run(read_samples(tasks, asked, names.split()))  # type: ignore[arg-type]


def _places(page: Page) -> list[str]:
    return [f"{sample.task}{sample.content['doc_id']}" for sample in page[0]]


def test_an_offset_counts_through_the_tasks():
    tasks = _Tasks(a=2, b=0, c=3)
    assert _places(_read(tasks, "a b c")) == ["a0", "a1", "c0", "c1", "c2"]
    page = _read(tasks, "a b c", limit=2, offset=1)
    assert (_places(page), page[1]) == (["a1", "c0"], 3)
    page = _read(tasks, "a b c", limit=2, offset=3)
    assert (_places(page), page[1]) == (["c1", "c2"], None)
    assert _read(tasks, "a b c", offset=5)[2] == "there are 5 samples"
    assert len(_read(_Tasks(a=130), "a", limit=120)[0]) == 120


def test_an_answer_is_bounded_and_goes_on():
    tasks = _Tasks("x" * LONGEST_TEXT, a=250)
    page = _read(tasks, "a", limit=250)
    assert 90 < len(page[0]) < MOST_BYTES / LONGEST_TEXT
    assert page[1] == len(page[0]) and "200000 bytes" in page[2]
    assert _places(_read(tasks, "a", limit=1, offset=page[1])) == [f"a{page[1]}"]
