"""Forks end, print, read and import as programs do that Python starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forks
from tests.cases import for_each

ENV = {**os.environ, "LMMS_EVAL_OF_THE_TEST": "x"}


@for_each(
    ("code", "wanted"),
    [
        ("import sys; print('out'); print('err', file=sys.stderr)", (0, "out\n", "err\n")),
        ("import sys; print(sys.argv, __name__)", (0, "['-c', 'a', 'b'] __main__\n", "")),
        ("raise SystemExit(3)", (3, "", "")),
        ("raise SystemExit('words')", (1, "", "words\n")),
        ("import os; os._exit(4)", (4, "", "")),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", (-signal.SIGKILL, "", "")),
        ("import atexit; atexit.register(print, 'end'); print('begin')", (0, "begin\nend\n", "")),
        ("import os; os.system('echo child')", (0, "child\n", "")),
        ("import os, sys; print(os.environ['LMMS_EVAL_OF_THE_TEST'], sys.stdin.read())", (0, "x \n", "")),
    ],
)
def test_as_python_runs_it(code: str, wanted: tuple[int, str, str]) -> None:
    words = ["-c", code, "a", "b"]
    for done in (
        forks.run(*words, env=ENV),
        subprocess.run(
            [sys.executable, *words], env=ENV, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        ),
    ):
        assert (done.returncode, done.stdout, done.stderr) == wanted


def test_an_error_has_its_traceback() -> None:
    done = forks.run("-c", "1 / 0", env=ENV)
    assert done.returncode == 1 and done.stderr.startswith("Traceback") and "ZeroDivisionError" in done.stderr


def test_a_script_finds_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("NUMBER = 7")
    script = tmp_path / "script.py"
    script.write_text("import sys, beside\nprint(__name__, beside.NUMBER, sys.argv)")
    assert forks.run(str(script), "a").stdout == f"__main__ 7 ['{script}', 'a']\n"


def test_code_of_a_folder_is_imported_anew(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / "own.py").write_text(f"NUMBER = {number} * 10000000\n" + " " * number)
        done = forks.run("-c", "import own, os; print(own.NUMBER, os.getcwd())", env=ENV, cwd=tmp_path)
        assert done.stdout == f"{number}0000000 {tmp_path}\n", done.stderr


def test_long_output_and_a_limit_on_files(tmp_path: Path) -> None:
    code = "print('x' * 1000000); open('file', 'w', buffering=1).write('y' * 100 + chr(10))"
    done = forks.run("-c", code, env=ENV, cwd=tmp_path, file_size=50)
    assert len(done.stdout) == 1_000_001 and "File too large" in done.stderr


def test_what_takes_too_long_is_killed() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        forks.run("-c", "import time; time.sleep(60)", env=ENV, timeout=0.5)
    assert forks.run("-c", "print(1)", env=ENV).stdout == "1\n"
