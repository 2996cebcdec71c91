from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
import time
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loguru import logger

from lmms_eval.cli.output import complain, emit, report_error
from lmms_eval.errors import DataError
from lmms_eval.utils.logging import configure_logging, log_lines
from lmms_eval.utils.terminal import coloured, display_width, printable
from tests.cases import for_each

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\u202egnp.exe\u2066\x7f\b"
SHOWN = r"\u001b]0;owned\u0007\u001b[2J\u009b31m\u000d\u202egnp.exe\u2066\u007f\u0008"


def is_harmless(text: str) -> bool:
    return all(
        character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp") for character in text
    ) and not any(
        unicodedata.bidirectional(c) in ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI") for c in text
    )


@given(st.text(st.characters()))
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    found = printable(text)
    assert is_harmless(found)
    found.encode()
    if is_harmless(text) and not set(text) & set("\u061c\u200e\u200f"):
        assert found == text


def test_what_is_shown() -> None:
    assert printable(HOSTILE) == SHOWN
    assert printable("two\r\nlines\tand é 漢 👩\u200d🔬") == "two\nlines\tand é 漢 👩\u200d🔬"


def test_json_stays_json() -> None:
    document = {"text": HOSTILE + "\u2028"}
    assert json.loads(printable(json.dumps(document, ensure_ascii=False))) == document


@pytest.fixture
def _loggers() -> Iterator[None]:
    yield
    logger.remove()


@pytest.mark.usefixtures("_loggers")
def test_everything_that_is_printed_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("DEBUG")
    emit(["| table |", HOSTILE])
    complain(HOSTILE)
    report_error(DataError(HOSTILE), with_traceback=True)
    report_error(KeyError(HOSTILE), with_traceback=False)
    logger.warning("the model said {}", HOSTILE)
    log_lines([HOSTILE])
    logging.getLogger("lmms_eval.models").error("reply %s", HOSTILE)
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        logger.exception("while {}", HOSTILE)
    printed = capsys.readouterr()
    assert is_harmless(printed.out) and SHOWN in printed.out
    assert is_harmless(printed.err) and printed.err.count(SHOWN) >= 8


SCRIPT = f"""
import threading, warnings
from lmms_eval.utils.terminal import guard_standard_error
guard_standard_error()
text = {HOSTILE!r} + "token=sk-very-secret-0123456789"
warnings.warn(text)
def fail(): raise ValueError(text)
thread = threading.Thread(target=fail)
thread.start()
thread.join()
class Bad:
    def __del__(self): raise ValueError(text)
bad = Bad()
del bad
fail()
"""


def test_warnings_and_uncaught_errors_are_escaped_too() -> None:

    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert is_harmless(ended.stderr) and ended.stderr.count(SHOWN) == 4
    assert "sk-very-secret" not in ended.stderr


@for_each(
    ("text", "shown"),
    [
        ("|a|better |", "|a|\x1b[32mbetter\x1b[0m |"),
        ("|cannot tell|", "|\x1b[33mcannot tell\x1b[0m|"),
        ("|worse|held|", "|\x1b[31mworse\x1b[0m|\x1b[32mheld\x1b[0m|"),
        ("|withheld (2 failed) |", "|\x1b[33mwithheld (2 failed)\x1b[0m |"),
        (r"|correct \| wrong|", "|\x1b[32mcorrect \\| wrong\x1b[0m|"),
        ("better|worse|", "better|worse|"),
        ("|betterment|failed_x|wrong.jsonl|held-out|", "|betterment|failed_x|wrong.jsonl|held-out|"),
        ("||\n||", "||\n||"),
    ],
)
def test_verdicts_in_tables_are_coloured(text: str, shown: str) -> None:
    assert coloured(text) == shown
    assert re.sub("\x1b\\[[0-9]+m", "", coloured(text)) == text


def test_colouring_takes_time_in_proportion_to_the_text() -> None:
    began = time.perf_counter()
    coloured("|failed" + " " * 100_000 + "x\n|" + "wrong" * 20_000 + "\n" + "|held" * 20_000)
    assert time.perf_counter() - began < 5


def test_marks_that_combine_take_no_column() -> None:
    assert display_width("e\u0301\u200b") == 1 and display_width("漢a") == 3
