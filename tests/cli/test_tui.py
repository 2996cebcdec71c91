"""``--tui`` and ``lmms-eval tui`` on a terminal of their own."""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import time
from pathlib import Path

import pytest

from benchmarks.workload import text_task
from lmms_eval.cli.main import main
from tests.cases import for_each
from tests.servers.stub import ROOT, StubServer

pytest.importorskip("textual")
LEAVES = b"\x1b[?1049l"
"""What a terminal is told when it is to show again what stood there before the screen."""
LIMIT_S = 120.0


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, *words: str) -> None:
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            more = {"TERM": "xterm-256color", "OPENAI_API_KEY": "stub", "PYTHONPATH": str(ROOT)}
            os.execve(sys.executable, [sys.executable, "-m", "lmms_eval", *words], {**os.environ, **more})
        self.shown = b""

    def until(self, text: bytes) -> None:
        limit = time.monotonic() + LIMIT_S
        while text not in self.shown:
            assert time.monotonic() < limit and self._read(), f"{text!r} was not shown: {self.shown[-2000:]!r}"

    def press(self, keys: bytes) -> None:
        os.write(self._terminal, keys)

    def ended(self) -> int:
        while self._read():
            pass
        os.close(self._terminal)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self) -> bool:
        if not select.select([self._terminal], [], [], LIMIT_S)[0]:
            return False
        try:
            data = os.read(self._terminal, 1 << 16)
        except OSError:  # the command has gone
            return False
        self.shown += data
        return bool(data)

    @property
    def printed(self) -> str:
        """What stands on the terminal when the screen is gone."""
        return self.shown.rpartition(LEAVES)[2].decode()


def words(tmp: Path, url: str, documents: int) -> list[str]:
    text_task(tmp / "tasks", documents)
    return [
        "--model", "openai", "--tasks", "bench_text", "--include_path", str(tmp / "tasks"),
        "--model_args", f"model=stub,base_url={url},num_concurrent=2,max_retries=0",
        "--output_path", str(tmp / "out"), "--tui",
    ]  # fmt: skip


def test_a_run_is_shown_and_its_table_comes_when_it_is_over(tmp_path: Path) -> None:
    with StubServer(delay=0.2) as server:
        terminal = Terminal(*words(tmp_path, server.url, 20))
        terminal.until(b"bench_text")
        assert terminal.ended() == 0
    assert "|bench_text|none  |" in terminal.printed
    assert len(list((tmp_path / "out").rglob("*_results.json"))) == 1


def test_ctrl_c_ends_the_run_in_order(tmp_path: Path) -> None:
    with StubServer(delay=0.2) as server:
        terminal = Terminal(*words(tmp_path, server.url, 2000))
        terminal.until(b"/2,000")
        terminal.press(b"\x03")
        assert terminal.ended() == 130
    assert "interrupted: what was finished is kept" in terminal.printed


def test_after_the_screen_is_left_the_command_goes_on(tmp_path: Path) -> None:
    with StubServer(delay=0.2) as server:
        terminal = Terminal(*words(tmp_path, server.url, 60))
        terminal.until(b"/60")
        terminal.press(b"q")
        assert terminal.ended() == 0
    assert "|bench_text|none  |" in terminal.printed


def test_a_run_that_cannot_begin_says_why(tmp_path: Path) -> None:
    terminal = Terminal(*words(tmp_path, "http://127.0.0.1:9", 2), "--model", "no_such_model")
    assert terminal.ended() == 2
    assert "no_such_model" in terminal.printed


def test_sigterm_ends_the_run_too(tmp_path: Path) -> None:
    with StubServer(delay=0.2) as server:
        terminal = Terminal(*words(tmp_path, server.url, 2000))
        terminal.until(b"/2,000")
        os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.ended() == 143


def test_runs_of_a_folder_are_watched(tmp_path: Path) -> None:
    terminal = Terminal("tui", str(tmp_path))
    terminal.until(b"no run has begun here yet")
    terminal.press(b"q")
    assert terminal.ended() == 0


@for_each(
    ("arguments", "said"),
    [
        (["tui", "."], "there is no terminal to draw on"),
        (["--model", "baseline", "--tasks", "t", "--tui"], "say which with --output_path DIR"),
        (["tui"], "DIR"),
    ],
)
def test_what_cannot_be_shown_is_refused(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert said in capsys.readouterr().err
