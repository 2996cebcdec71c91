from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.server.progress import RunProgress
from lmms_eval.storage import codec
from lmms_eval.storage.lines import sealed


def _line(doc_id: int, score: float | None, key: str = "k") -> bytes:
    record = {"task": "t", "doc_id": doc_id, "key": key}
    if score is None:
        record["failed"] = "why"
    else:
        record["scores"] = [{"filter": "none", "metrics": {"acc": score}}]
    return sealed(codec.dumps(record)) + b"\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "scores-0.jsonl"


def _add(file: Path, *lines: bytes) -> None:
    with open(file, "ab") as target:
        target.writelines(lines)


def test_each_look_adds_what_has_come(tmp_path, file):
    progress = RunProgress(tmp_path)
    assert progress.look() == {}
    _add(file, _line(0, 1.0), _line(1, None), _line(2, 0.0)[:-5])
    assert progress.look() == {"t": {"done": 2, "failed": 1, "metric": "acc", "score": 1.0, "n": 1}}
    _add(file, _line(2, 0.0)[-5:], _line(1, 0.5))
    assert progress.look() == {"t": {"done": 3, "failed": 0, "metric": "acc", "score": 0.5, "n": 3}}


def test_damaged_lines_are_passed_over_and_failures_replace_no_score(tmp_path, file):
    _add(file, _line(0, 1.0), b"\n", b"{nonsense}\n", _line(0, None))
    assert RunProgress(tmp_path).look()["t"] == {"done": 1, "failed": 0, "metric": "acc", "score": 1.0, "n": 1}


def test_other_settings_and_files_begun_anew_begin_anew(tmp_path, file):
    progress = RunProgress(tmp_path)
    _add(file, _line(0, 1.0), _line(1, 1.0))
    progress.look()
    _add(file, _line(0, 0.0, key="other"))
    assert progress.look()["t"]["score"] == 0.0
    file.write_bytes(_line(5, 0.25))
    assert progress.look()["t"] == {"done": 1, "failed": 0, "metric": "acc", "score": 0.25, "n": 1}
