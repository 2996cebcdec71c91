"""Progress displays of plugins."""

from __future__ import annotations

import io
import logging
import re
import sys
import threading

import pytest
from tqdm import tqdm

from lmms_eval.compat import concurrency as progress
from lmms_eval.models.model_utils.progress import SlurmProgress, make_progress


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines that are logged, with a clock that ticks a second each time it is read."""
    seconds = iter(range(1000))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(seconds)))
    for name in ("RANK", "SLURM_ARRAY_TASK_ID"):
        monkeypatch.delenv(name, raising=False)
    caplog.set_level(logging.INFO, progress.__name__)
    return caplog.messages


def test_lines_at_intervals_at_the_last_item_and_at_the_end(lines: list[str], caplog: pytest.LogCaptureFixture) -> None:
    with SlurmProgress(8, "Asking", log_interval=3.0) as bar:
        for _ in range(4):
            bar.update(2)
    bar.close()
    assert bar.n == 8
    assert caplog.messages == [
        "[rank 0] Asking: 6/8 (75.0%) | 2.00 it/s | elapsed 3s | ETA 1s",
        "[rank 0] Asking: 8/8 (100.0%) | 2.00 it/s | elapsed 4s | ETA 0s",
        "[rank 0] Asking: done 8/8 in 5s (1.60 it/s)",
    ]


@pytest.mark.parametrize(
    ("variables", "rank"),
    [({"RANK": "2", "SLURM_ARRAY_TASK_ID": "5"}, "2"), ({"SLURM_ARRAY_TASK_ID": "5"}, "5")],
)
def test_a_line_names_its_process(
    variables: dict[str, str],
    rank: str,
    lines: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    SlurmProgress(None).close()
    assert [re.split(r"[] ]", line)[1] for line in caplog.messages] == [rank]


def test_a_disabled_one_counts_and_says_nothing(lines: list[str], caplog: pytest.LogCaptureFixture) -> None:
    with make_progress(2, disable=True) as bar:
        bar.update()
        bar.update()
    assert (bar.n, caplog.messages) == (2, [])


def test_updates_from_several_threads_are_all_counted() -> None:
    bar = SlurmProgress(0, disable=True)
    threads = [threading.Thread(target=lambda: [bar.update() for _ in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bar.n == 2000


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_in_a_terminal_and_lines_in_a_batch_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert isinstance(make_progress(3), SlurmProgress)  # the tests' standard error is no terminal
    monkeypatch.setattr(sys, "stderr", Terminal())
    with make_progress(3, "Asking") as bar:
        assert isinstance(bar, tqdm)
        bar.update(3)
        assert bar.n == 3
    assert "Asking: 100%" in sys.stderr.getvalue()
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    assert isinstance(make_progress(3), SlurmProgress)
