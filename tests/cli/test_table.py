from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.cli.main import main
from tests.cases import for_each
from tests.exchange.table_runs import right, write_table_run


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    for name, count in (("a", 36), ("b", 20)):
        write_table_run(tmp_path / name, f"org/{name}", right(count))
    return ["a", "b"]


def test_markdown_is_printed_without_a_form(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", *runs]) == 0
    out = capsys.readouterr().out
    assert "|a  |**90.0** [10.0, 90.0]|" in out and "|b  |50.0† [10.0, 90.0]   |" in out


def test_all_forms_at_once(runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forms = {"latex": "\\begin{table}", "markdown": "|", "csv": "run,source,task", "html": "<!doctype html>"}
    words = [word for form in forms for word in (f"--{form}", f"new/t.{form}")]
    assert main(["table", *runs, *words]) == 0
    assert capsys.readouterr().err.startswith("written: new/t.latex, ")
    for form, text in forms.items():
        assert text in (tmp_path / "new" / f"t.{form}").read_text(encoding="utf-8")


@for_each("words", [["--latex"], ["--latex", "-"], ["--latex", "--csv", "t.csv"]])
def test_a_form_without_a_file_is_printed(
    runs: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["table", *runs, *words]) == 0
    assert capsys.readouterr().out.startswith("% needs \\usepackage{booktabs}\n\\begin{table}[t]")


def test_options_reach_the_table(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--rows", "tasks", "--se", "--bold", "significant", "--names", "X,Y", "--digits", "2", "--metric", "acc"]
    assert main(["table", *runs, *words]) == 0
    out = capsys.readouterr().out
    assert "|        |       X        |      Y      |" in out
    assert "|quiz acc|**90.00** ± 6.25|50.00† ± 6.25|" in out


WRONG = {
    "no run": ([], "the following arguments are required: RUN"),
    "absent": (["absent"], "absent: no such file or folder"),
    "two forms on one output": (["a", "--latex", "--csv"], "--latex and --csv would both be printed"),
    "a run as the file": (["b", "--latex", "a"], "--latex a: that is a folder"),
    "a file of a run": (["a", "--csv", "a/20240101_000000_results.json"], "that is a file of the run a"),
    "a level": (["a", "--alpha", "2"], "--alpha 2: give a probability between 0 and 1"),
    "a task": (["a", "--tasks", "none"], "--tasks: no run has a number of none; they have quiz"),
    "a metric": (["a", "--metric", "none"], "--metric: no run has none; they have acc"),
    "names": (["a", "b", "--names", "X"], "--names: 1 names for 2 runs"),
    "a model": (["a", "--published", "nobody"], "unknown model 'nobody'"),
    "both": (["a", "--se", "--ci"], "not allowed with"),
}


@for_each("words, message", WRONG.values(), ids=WRONG)
def test_mistakes_are_one_line(
    runs: list[str], words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["table", *words]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1
