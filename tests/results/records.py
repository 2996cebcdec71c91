"""Records of runs whose journals a test writes line by line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lmms_eval.engine.headline import HeadlinePart, RandomOrder
from lmms_eval.engine.live import RunOutline, outline_of, write_outline
from lmms_eval.engine.looks import Sampling
from lmms_eval.engine.plan import plan_task
from lmms_eval.results.files import RUNS
from lmms_eval.storage.lines import JournalWriter
from lmms_eval.storage.run_folder import RunFolder
from lmms_eval.utils.numbers import ScoreRange
from tests.engine.fakes import FakeTask

PART = HeadlinePart("quiz", "acc", "none", ScoreRange(0, 1))


class Record:
    """A run ``OUT/MODEL/.runs/KEY`` of the task ``quiz``, owned by this process."""

    def __init__(self, out: Path, documents: int, key: str = "abc", sampled: bool = True) -> None:
        self.folder = RunFolder(out / RUNS / key)
        self.folder.acquire()
        self.write_state(date="2026-01-01")
        plan = plan_task(FakeTask(documents, "quiz"), None, 0)
        sampling = Sampling(RandomOrder(0), shown=(PART,)) if sampled else None
        self.outline: RunOutline = outline_of([plan], sampling, {"quiz": PART})
        write_outline(self.folder.path, self.outline)
        self.order = list(self.outline.tasks["quiz"].order) or list(range(documents))

    @property
    def path(self) -> Path:
        return self.folder.path

    def write_state(self, state: str = "running", **more: Any) -> None:
        told = {"quiz": {"metric_list": [{"metric": "acc", "aggregation": "mean"}], "higher_is_better": {"acc": True}}}
        known = {"key": "abc", "stamp": "20260101_000000", "arguments": {"model": "modest"}, "tasks": told}
        self.folder.write({**known, "state": state, **more})

    def score(self, doc_id: int, number: float, rank: int = 0, **more: Any) -> dict[str, Any]:
        answer = {"value": "B", "input": "Which?", "usage": [[10, 2, 0]], "finish_reason": "stop", "latency": 0.5}
        record = {
            "task": "quiz",
            "doc_id": doc_id,
            "answers": [answer],
            "target": "B",
            "doc": {"kind": str(doc_id % 2)},
            "doc_hash": "",
            "media": [],
            "key": "one",
            "scores": [{"filter": "none", "filtered": "B", "metrics": {"acc": number}}],
            **more,
        }
        return self._append(record, rank)

    def fail(self, doc_id: int, reason: str = "timeout: no answer") -> dict[str, Any]:
        return self._append({"task": "quiz", "doc_id": doc_id, "answers": [], "failed": reason, "key": "one"}, 0)

    def _append(self, record: dict[str, Any], rank: int) -> dict[str, Any]:
        writer = JournalWriter(self.path / f"scores-{rank}.jsonl")
        writer.append(record)
        writer.close()
        return record
