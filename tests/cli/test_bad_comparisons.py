"""Bad input to ``compare`` and ``gate``: one clear line, exit code 2, nothing written."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.cli.main import main

FORMATS = "unknown format; looked for: "
FILES = {
    "good.csv": "id,score,app\na,1,x\nb,0,x\nc,1,y\nd,0,y\n",
    "other.csv": "id,score,app\na,1,x\nb,1,x\nc,0,y\nd,0,y\n",
    "third.csv": "id,score\nx,1\ny,0\n",
    "poll.csv": "id,score,task\na,1,poll\n",
    "f1.csv": "id,score,metric\na,1,f1\n",
    "half.csv": "id,score\na,50\nb,50\nc,50\n",
    "halves.csv": "id,score\na,50\nb,50\nc,50\n",
    "one.csv": "id,score\na,1\n",
    "one_more.csv": "id,score\na,0\n",
    "head.csv": "id,score\n",
    "words.csv": "id,score\na,right\nb,wrong\n",
    "twice.csv": "id,score\na,1\n a,0\n",
    "nan.jsonl": '{"doc_id": 0, "filtered_resps": "x", "status": "scored", "filter": "none", "acc": NaN}\n',
    "infinite.jsonl": '{"doc_id": 0, "filtered_resps": "x", "status": "scored", "filter": "none", "acc": Infinity}\n',
    "torn.jsonl": '{"doc_id": 0, "filtered_resps": "x", "acc": 1}\n{"doc_id": 1, "filt',
    "empty.csv": "",
    "run/20250101_000000_samples_quiz.jsonl": '{"doc_id": 0, "filtered_resps": "x", "acc": 1}\n',
    "run/20250101_000000_results.json": json.dumps(
        {"results": {"quiz": {"acc,none": 1.0}}, "configs": {"quiz": {}}, "n-shot": {}, "run_key": "k"}
    ),
    "run/notes.txt": "mine",
    "policy.yaml": 'tasks: ["*"]\nmargin: 0.05\n',
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "bytes.bin").write_bytes(bytes(range(256)))
    (tmp_path / "book.xlsx").write_bytes(b"PK\x03\x04" + bytes(99))
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def refused(words: Sequence[str], folder: Path, capsys: pytest.CaptureFixture[Any]) -> str:
    """Run a command that is to be refused; return its one line."""
    before = contents(folder)
    assert main(list(words)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert contents(folder) == before
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    return captured.err


RUNS: list[tuple[str, str, str]] = [
    ("good.csv", "third.csv", "good and third have no document in common"),
    ("good.csv", "poll.csv", "have no task in common: good against poll; if these are the same documents: --task"),
    ("good.csv", "f1.csv", "no metric in common (good: score,none; f1: f1,none)"),
    ("half.csv", "halves.csv", "these runs cannot be compared: half score: no spread (3 documents)"),
    ("one.csv", "one_more.csv", "these runs cannot be compared: one score: n = 1 (1 documents)"),
    ("good.csv", "head.csv", "head.csv holds no document"),
    ("good.csv", "words.csv", "values of score that are not finite numbers: unscored (2)"),
    ("good.csv", "twice.csv", "1 ids occur in more than one row: a"),
    (
        "nan.jsonl",
        "infinite.jsonl",
        "nothing can be compared: nan.jsonl: nan: values of acc,none that are not finite numbers: unscored (1)",
    ),
    ("good.csv", "torn.jsonl", "torn.jsonl, line 2: no JSON"),
    ("good.csv", "empty.csv", f"empty.csv: {FORMATS}"),
    ("good.csv", "bytes.bin", f"bytes.bin: {FORMATS}"),
    ("good.csv", "book.xlsx", f"book.xlsx: {FORMATS}"),
    ("good.csv", "empty", "empty: no run in this folder"),
    ("good.csv", "absent.csv", "absent.csv: no such file or folder"),
    ("good.csv", "pipe", "pipe: not a regular file"),
    ("good.csv", "./good.csv", "good.csv is named twice"),
    ("run", "run/20250101_000000_results.json", "that is one run; name different ones"),
]


@pytest.mark.parametrize(("first", "second", "message"), RUNS)
def test_runs_that_cannot_be_compared(
    first: str, second: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--json", "out/c.json", "--csv", "c.csv", "--markdown", "c.md", "--flips", "f.jsonl", "--plot", "c.png"]
    assert message in refused(["compare", first, second, *files], folder, capsys)


UNSETTLED = {"half.csv", "one.csv", "nan.jsonl", "words.csv"}
"""Of these a gate says that it cannot tell, which is an exit code of its own."""


@pytest.mark.parametrize(("first", "second", "message"), [one for one in RUNS if UNSETTLED.isdisjoint(one[:2])])
def test_runs_that_no_gate_can_judge(
    first: str, second: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["gate", "--policy", "policy.yaml", first, second, "--junit", "o.xml", "--markdown", "o.md"]
    assert message in refused(words, folder, capsys)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--margin", "-1"], "--margin -1.0: give a difference above 0"),
        (["--margin", "nan"], "--margin nan: give a difference above 0"),
        (["--margin", "much"], "--margin: invalid float value: 'much'"),
        (["--alpha", "2"], "--alpha 2: give a probability between 0 and 1"),
        (["--alpha", "nan"], "--alpha nan: give a probability"),
        (["--draws", "1"], "--draws 1: give at least 100"),
        (["--seed", "-1"], "--seed -1: give a number of at least 0"),
        (["--by", "size"], "--by size: no task has such a column; they have: app"),
        (["--reference", "x"], "--reference x: name one of the runs: good, other"),
        (["--plot", "x.bmp"], "--plot x.bmp: give a file that ends with .pdf, .svg or .png"),
        (["--csv", "-"], "--csv -: only --json can be printed"),
        (["--csv", "empty"], "--csv empty: that is a folder"),
        (["--csv", "pipe"], "--csv pipe: that is not a regular file"),
        (["--csv", "one.csv/c.csv"], "one.csv is not a folder"),
        (["--csv", "other.csv"], "--csv other.csv: that is a file of the run other.csv"),
        (["--csv", "x", "--flips", "./x"], "--csv writes the same file"),
        (["run", "--flips", "run/notes.txt"], "--flips run/notes.txt: that is a file of the run run"),
        (
            ["run/20250101_000000_samples_quiz.jsonl", "--json", "run/20250101_000000_results.json"],
            "that is a file of the run run/20250101_000000_samples_quiz.jsonl",
        ),
    ],
)
def test_options_of_a_comparison(
    words: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(["compare", "good.csv", "other.csv", *words, "--markdown", "c.md"], folder, capsys)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("", "give keys and values, at least tasks and margin"),
        ("tasks: [quiz]\nmargin: 0.1\nmargins: 1\n", "unknown key 'margins'; did you mean margin?"),
        ("tasks: [quiz]\nmargin: much\n", "margin: Input should be a valid number"),
        ("tasks: 3\nmargin: 0.1\n", "tasks: give names or patterns of tasks"),
        ("tasks: []\nmargin: 0.1\n", "tasks: name at least one task"),
        ("tasks: {quiz: 3}\nmargin: 0.1\n", "tasks.quiz: give keys and values"),
        ("tasks: [[a, b]]\nmargin: 0.1\n", "tasks: Value error, give names or patterns of tasks"),
        ("tasks: [quiz\n", "is not valid YAML: "),
        ("\xff\xfe", "cannot be read: not UTF-8 text"),
    ],
)
def test_policies(policy: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad.yaml").write_text(policy, encoding="latin-1")
    words = ["gate", "--policy", "bad.yaml", "good.csv", "other.csv", "--junit", "o.xml"]
    assert message in refused(words, folder, capsys)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policy", "absent.yaml"], "policy absent.yaml cannot be read: No such file or directory"),
        (["--policy", "empty"], "policy empty cannot be read: Is a directory"),
        (["--policy", "policy.yaml", "--json", "policy.yaml"], "--json policy.yaml: policy.yaml is read"),
        (["--policy", "policy.yaml", "--junit", "good.csv"], "--junit good.csv: that is a file of the run good.csv"),
        (["--policy", "policy.yaml", "--junit", "-"], "--junit -: only --json can be printed"),
    ],
)
def test_files_of_a_gate(words: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in refused(["gate", *words, "good.csv", "other.csv"], folder, capsys)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads and writes whatever the rights are")
def test_what_cannot_be_read_or_written_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "good.csv").chmod(0)
    assert "good.csv cannot be read" in refused(["compare", "other.csv", "good.csv"], folder / "run", capsys)
    (folder / "empty").chmod(0o500)
    words = ["compare", "other.csv", "third.csv", "--csv", "empty/c.csv"]
    assert "cannot be written into" in refused(words, folder / "run", capsys)


def test_a_file_that_cannot_be_made_leaves_the_others_unwritten(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from lmms_eval.compare import table

    def full(_flips: Any) -> Any:
        yield '{"task":"good"}\n'
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(table, "flips_json", full)
    (folder / "c.csv").write_text("before")
    before = contents(folder)
    assert main(["compare", "good.csv", "other.csv", "--csv", "c.csv", "--json", "c.json", "--flips", "f.jsonl"]) == 1
    assert "cannot write f.jsonl: No space left on device" in capsys.readouterr().err
    assert contents(folder) == before


def test_scores_beyond_a_stated_range_are_said_and_compared_without_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"metric_list": [{"metric": "acc", "aggregation": "mean", "range": [0, 1]}]}
    for name, scores in (("a", [0.5, 0.2, 1.0, 0.0]), ("b", [0.4, 0.1, 1.0, 3.0])):
        (folder / name).mkdir()
        lines = [
            {"doc_id": n, "filtered_resps": "x", "status": "scored", "filter": "none", "acc": score}
            for n, score in enumerate(scores)
        ]
        (folder / name / "20250101_000000_samples_quiz.jsonl").write_text("\n".join(map(json.dumps, lines)))
        results = {"results": {}, "configs": {"quiz": config}, "n-shot": {}, "run_key": name}
        (folder / name / "20250101_000000_results.json").write_text(json.dumps(results))
    assert main(["compare", "a", "b"]) == 0
    out = capsys.readouterr().out
    assert "quiz acc: scores from 0 to 3 lie outside the stated range" in out
    assert "methods that need no range are used" in out


def test_two_files_of_one_task_each_are_compared_as_they_stand(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "good.csv", "other.csv"]) == 0
    out = capsys.readouterr().out
    assert "|good|score" in out
    assert "other.csv: other is compared with good: each file holds one task, called after the file" in out
    assert main(["gate", "--policy", "policy.yaml", "good.csv", "other.csv"]) == 5
    assert "does not have this task" not in capsys.readouterr().out
