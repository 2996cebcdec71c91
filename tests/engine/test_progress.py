from __future__ import annotations

import sys
import time
from typing import Any

import pytest

from lmms_eval.engine import live
from lmms_eval.engine.live import MeanSoFar, ProgressLine
from tests.cases import for_each


def record(value: Any = 1.0, **more: Any) -> dict[str, Any]:
    return {"scores": [{"metrics": {"submission": {"text": "x"}, "acc": value}}], **more}


def test_documents_failures_and_tokens_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    progress = ProgressLine(10, 2, enabled=False)
    progress.document(record())
    progress.document({"failed": "timeout"})
    progress.document({"scores": []})
    progress.count_tokens = lambda: 7
    progress.close()
    assert (progress.done, progress.failed, progress.tokens) == (5, 1, 7)
    assert capsys.readouterr().err == ""


def test_plain_lines_without_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "PLAIN_INTERVAL_S", 0.0)
    progress = ProgressLine(4, 1)
    progress.document(record(1.0))
    progress.document(record(0.5))
    progress.count_tokens = lambda: 5
    progress.close()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[-1].startswith("3/4 documents, ")
    assert lines[-1].endswith(", score 0.7500 (of 2 new) failed 0 tokens 5")


def test_a_short_run_says_nothing_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    progress = ProgressLine(1)
    progress.document(record())
    progress.close()
    assert capsys.readouterr().err == ""


def test_a_bar_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    progress = ProgressLine(3, 1)
    progress.document(record(0.25))
    progress.close()
    shown = capsys.readouterr().err
    assert "2/3" in shown


def test_other_processes_are_shown_with_this_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "PLAIN_INTERVAL_S", 0.0)
    other = ProgressLine(10, 4, enabled=False)
    other.document(record(0.0))
    other.document({"failed": "timeout"})
    other.count_tokens = lambda: 30
    first = ProgressLine(10, 4)
    first.document(record(1.0))
    first.count_tokens = lambda: 5
    first.add_others(other.counts())
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("7/10 documents, ")
    assert line.endswith(", score 0.5000 (of 2 new) failed 1 tokens 35")


def test_the_bar_moves_while_only_others_work(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    progress = ProgressLine(9, 1)
    for done in (2, 7):
        progress.add_others({"done": done})
    progress.close()
    assert "8/9" in capsys.readouterr().err


@for_each("is_terminal", [True, False])
def test_a_display_that_cannot_be_written_ends_alone(is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        encoding = "utf-8"
        writes = 0

        def isatty(self) -> bool:
            return is_terminal

        def write(self, text: str) -> int:
            self.writes += 1
            if self.writes > 1:
                raise OSError(5, "Input/output error")
            return len(text)

        def flush(self) -> None: ...

    monkeypatch.setattr(live, "PLAIN_INTERVAL_S", 0.0)
    monkeypatch.setattr(sys, "stderr", Broken())
    progress = ProgressLine(400)
    for _ in range(300):
        progress.document(record())
    time.sleep(0.15)  # the bar is drawn ten times a second at most
    progress.document(record())
    progress.close()
    assert progress.done == 301
    assert sys.stderr.writes < 6  # type: ignore[attr-defined]


def test_the_running_number_is_asked_for_once_a_second_at_most(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "PLAIN_INTERVAL_S", 0.0)
    asked: list[str] = []

    def running() -> str:
        asked.append("score 0.5000 [0.4000, 0.6000] over the first 7")
        return asked[-1]

    progress = ProgressLine(400, running=running)
    for _ in range(200):
        progress.document(record())
    assert len(asked) < 5
    progress.close()
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.endswith(", score 0.5000 [0.4000, 0.6000] over the first 7 failed 0 tokens 0")


def test_scores_are_told_by_task_with_those_of_earlier_starts_and_other_processes() -> None:
    progress, other = ProgressLine(10, 2, enabled=False), ProgressLine(10, enabled=False)
    progress.count_by_task([record(0.0, task="a"), {"task": "a", "failed": "timeout"}])
    other.count_by_task([])
    progress.document(record(1.0, task="a"))
    progress.document(record(float("nan"), task="a"))
    progress.count_tokens = lambda: 7
    other.document(record(0.5, task="a"))
    other.document(record(0.25, task="b"))
    other.document({"task": "b", "failed": "timeout"})
    progress.add_others(other.counts())
    look = progress.look()
    assert (look.done, look.total, look.failed, look.tokens) == (7, 10, 1, 7)
    assert look.scores == {"a": MeanSoFar(0.5, 3), "b": MeanSoFar(0.25, 1)}
    assert ProgressLine(1, enabled=False).look().scores == {}
