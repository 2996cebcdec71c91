"""Terminals of all kinds: width, colours, encoding, time zone, and none at all."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lmms_eval.utils.terminal import encodable
from tests.cases import for_each
from tests.terminal import terminal

ROOT = Path(__file__).parents[2]
PROGRESS = """
from lmms_eval.engine.live import ProgressLine
shown = ProgressLine(3)
for number in range(3):
    shown.document({"task": "t", "failed": "why"} if number else {"task": "t", "scores": [{"metrics": {"m": 1.0}}]})
shown.close()
"""
LOG = """
import lmms_eval.utils.logging
lmms_eval.utils.logging.configure_logging()
from loguru import logger
logger.info("\\u2191 told")
"""
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def _environ(**variables: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**kept, "PYTHONPATH": str(ROOT), "TERM": "xterm", "HF_HUB_OFFLINE": "1", **variables}


def _in_terminal(code: str, columns: int = 80, **variables: str) -> str:
    with terminal([sys.executable, "-c", code], _environ(**variables), columns) as opened:
        return opened.read_to_end()


@pytest.mark.parametrize(("columns", "has_bar"), [(40, False), (80, True), (200, True)])
def test_the_display_shows_score_and_failures_at_any_width(columns, has_bar) -> None:
    text = _in_terminal(PROGRESS, columns)
    last = text.rstrip().split("\r")[-1]
    assert "3/3" in last
    assert "score 1.0000 failed 2" in last
    assert len(last) <= columns
    assert ("100%|" in last) is has_bar


STOPPED = """
import os, signal
from lmms_eval.engine.live import ProgressLine
from lmms_eval.engine.signals import Interrupts
with Interrupts(lambda: None, 5.0):
    shown = ProgressLine(3)
    os.kill(os.getpid(), signal.SIGINT)
    shown.close()
"""


def test_what_a_signal_says_stands_on_a_line_of_its_own() -> None:
    assert "\nstopping: what is in flight has 5 s to finish" in _in_terminal(STOPPED)


def test_a_terminal_that_only_appends_gets_no_display() -> None:
    assert _in_terminal(PROGRESS, TERM="dumb") == ""


@for_each(
    ("variables", "is_colourful"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
    ],
)
def test_colours_of_the_log_in_a_terminal(variables, is_colourful) -> None:
    text = _in_terminal(LOG, **variables)
    assert "told" in text
    assert ("\x1b[" in text) is is_colourful


@for_each(("variables", "is_colourful"), [({}, False), ({"FORCE_COLOR": "1"}, True)])
def test_colours_of_the_log_in_a_file(variables, is_colourful) -> None:
    done = subprocess.run([sys.executable, "-c", LOG], env=_environ(**variables), capture_output=True, text=True)
    assert "told" in done.stderr
    assert ("\x1b[" in done.stderr) is is_colourful


def test_the_log_of_a_terminal_without_arrows() -> None:
    assert "^ told" in _in_terminal(LOG, **ASCII)


@for_each(
    ("encoding", "shown"),
    [
        ("utf-8", "|\u2191  |1.5|\u00b1  |0.1| \u4e2d"),
        ("ascii", "|^  |1.5|+- |0.1| \\u4e2d"),
        ("latin-1", "|^  |1.5|\u00b1  |0.1| \\u4e2d"),
    ],
)
def test_what_an_encoding_lacks_is_replaced_and_tables_keep_their_columns(encoding, shown) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    assert encodable("|\u2191  |1.5|\u00b1  |0.1| \u4e2d", stream) == shown


def _run(tmp_path: Path, zone: str) -> tuple[str, str]:
    """Evaluate in a time zone without a terminal and in ASCII; return the output and the date stamp."""
    out = tmp_path / zone.replace("/", "_")
    words = ["--model", "baseline", "--model_args", "strategy=gold", "--tasks", "colours", "--output_path", str(out)]
    command = [sys.executable, "-m", "lmms_eval", *words, "--include_path", str(ROOT / "examples" / "task")]
    environ = _environ(TZ=zone, **ASCII)
    done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert b"\x1b" not in done.stdout + done.stderr
    (results,) = out.rglob("*_results.json")
    return done.stdout.decode("ascii"), results.name[:8]


def test_runs_in_ascii_with_the_date_of_their_time_zone(tmp_path: Path) -> None:
    west, east = _run(tmp_path, "Etc/GMT+12"), _run(tmp_path, "Etc/GMT-14")
    assert re.search(r"\|\^ +\| +1\|\+- ", west[0])
    assert east[1] > west[1]


TABLE = """
from lmms_eval.cli.output import emit
emit("|Verdict|\\n|-------|\\n|better |\\n|\\x1b[31mworse|")
"""


@for_each(
    ("variables", "has_colours"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False)],
)
def test_verdicts_are_coloured_where_the_terminal_takes_it(variables: dict[str, str], has_colours: bool) -> None:
    text = _in_terminal(TABLE, **variables)
    assert ("\x1b[32mbetter\x1b[0m" in text) is has_colours
    assert "\\u001b[31mworse" in text


def test_a_pipe_gets_no_colours() -> None:
    done = subprocess.run([sys.executable, "-c", TABLE], env=_environ(), capture_output=True, text=True, check=True)
    assert "\x1b" not in done.stdout and "|better |" in done.stdout
