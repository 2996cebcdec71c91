from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.cli.score import run
from lmms_eval.errors import UsageError
from lmms_eval.evaluation.rescore import GIVEN


def test_the_run_must_be_named(tmp_path: Path) -> None:
    for words in ([], ["--judge_model", "jury"]):
        with pytest.raises(UsageError, match="name the run"):
            run(words)
    with pytest.raises(UsageError, match="0 recorded runs"):
        run([str(tmp_path)])


def test_options_of_another_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--gen_kwargs would make it another run"):
        run([str(tmp_path), "--gen_kwargs", "temperature=1"])


def test_help_names_the_flags(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    said = capsys.readouterr().out
    assert all(f"--{name}" in said for name in GIVEN)
