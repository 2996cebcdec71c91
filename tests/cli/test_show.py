from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmms_eval.cli import show
from lmms_eval.cli.main import main
from tests.results.runs import KEY, sample, write_record, write_run


@pytest.fixture
def run(tmp_path: Path) -> str:
    return str(write_run(tmp_path / "org__model"))


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["show", *words]) == 0
    return capsys.readouterr().out


def test_the_table_again(run: str, capsys) -> None:
    text = shown(capsys, run)
    assert text.startswith("org/model, 2024-01-01T00:00:00, complete: ")
    assert "|quiz |" in text
    facts = json.loads(shown(capsys, run, "--json"))
    assert (facts["state"], facts["results"]["results"]["quiz"]["acc,none"]) == ("complete", 0.5)


def test_the_table_as_latex(run: str, capsys) -> None:
    text = shown(capsys, run, "--latex")
    assert text.startswith("% needs \\usepackage{booktabs}\n\\begin{tabular}")
    assert "{}quiz & " in text
    assert main(["show", run, "quiz", "--latex"]) == 2
    assert "leave tasks, samples and --json out" in capsys.readouterr().err


def test_no_results_no_latex(tmp_path: Path, capsys) -> None:
    write_record(tmp_path / ".runs" / KEY, command="lmms-eval --tasks quiz")
    assert main(["show", str(tmp_path), "--latex"]) == 2
    assert "the run has no results yet" in capsys.readouterr().err


def test_an_unfinished_run_says_how_to_go_on(tmp_path: Path, capsys) -> None:
    write_record(tmp_path / ".runs" / KEY, command="lmms-eval --tasks quiz")
    assert main(["show", str(tmp_path)]) == 0
    told = capsys.readouterr()
    assert "interrupted" in told.out
    assert "the command that continues it: lmms-eval --tasks quiz" in told.out
    assert "nothing has been answered yet" in told.err


def test_a_task_s_breakdown(run: str, capsys) -> None:
    assert "quiz: acc, none" in shown(capsys, run, "quiz")
    assert json.loads(shown(capsys, run, "quiz", "--metric", "graded", "--json"))["metric"] == "graded"


def test_one_sample(run: str, capsys) -> None:
    assert "--- answer\n<think></think>said 2" in shown(capsys, run, "quiz", "2")
    assert json.loads(shown(capsys, run, "quiz", "2", "--json"))["doc_id"] == 2


def test_samples_that_fit(run: str, capsys) -> None:
    assert main(["show", run, "--where", "score < 1"]) == 0
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 4
    assert told.err.endswith("2 samples, mean score 0.0000 over 2\n")
    assert main(["show", run, "quiz", "--limit", "1", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["doc_id"] == "0"
    assert "4 samples, 1 of them shown (--limit)" in told.err


def test_the_audit(run: str, capsys) -> None:
    assert "Unparsed" in shown(capsys, run, "--audit")
    assert json.loads(shown(capsys, run, "quiz", "--audit", "--json", "--ids", "0-1"))[0]["answers"] == 2


def test_control_characters_never_reach_the_terminal(tmp_path: Path, capsys) -> None:
    evil = "\x1b]0;owned\x07\x9b2J\u202egnp"
    path = write_run(
        tmp_path,
        [sample(n, resps=evil, input=evil, target=evil, doc={evil: evil}, judge=[{evil: evil}]) for n in range(4)],
    )
    for words in ([], ["quiz"], ["quiz", "0"], ["quiz", "0", "--json"], ["--limit", "9"], ["--audit"]):
        text = shown(capsys, str(path), *words)
        assert not set("\x1b\x07\x9b\u202e") & set(text), words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["other"], "no samples of a task 'other'; there are: quiz"),
        (["quiz", "77"], "no document 77"),
        (["quiz", "0", "--where", "score < 1"], "leave --where"),
        (["--where", "score <"], "at its end"),
        (["--limit", "-1"], "--limit"),
    ],
)
def test_mistakes_are_one_line(run: str, capsys, words: list[str], said: str) -> None:
    assert main(["show", run, *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


def test_pictures_are_asked_for_where_one_sample_is_shown(run: str, capsys, monkeypatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("lmms_eval.cli.show.show_pictures", asked.extend)
    shown(capsys, run, "quiz", "1")
    assert asked == ["/media/1.png"]
    assert show.MOST_LINES == 50
