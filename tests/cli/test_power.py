from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmms_eval.cli.main import main
from tests.cases import for_each


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A task with 40 documents, and one whose data is missing."""
    rows = "".join(json.dumps({"question": f"q{i}", "answer": "a"}) + "\n" for i in range(40))
    (tmp_path / "data.jsonl").write_text(rows)
    for name, data in (("zz_there", "data.jsonl"), ("zz_gone", "absent.jsonl")):
        (tmp_path / f"{name}.yaml").write_text(
            f"task: {name}\ndataset_path: json\ndataset_kwargs: {{data_files: {{test: {data}}}}}\n"
            "test_split: test\noutput_type: generate_until\n"
            'doc_to_text: "{{question}}"\ndoc_to_target: "{{answer}}"\nmetric_list: [{metric: exact_match}]\n'
        )
    return tmp_path


@pytest.mark.parametrize("words", [["power", "--tasks"], ["--power-analysis", "--tasks"]])
def test_tasks(words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*words, "zz_there,zz_gone,zz_unknown", "--include_path", str(folder), "--effect-size", "0.5"]
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert "Task zz_there\n  n: 40\n  power: 1.0\n" in captured.out
    assert captured.out.endswith("  sufficient\n")
    assert "zz_gone is left out" in captured.err
    assert "zz_unknown is left out" in captured.err
    assert "zz_gone" not in captured.out


def test_a_task_that_is_too_small(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", "--tasks", "zz_there", "--include-path", str(folder)]) == 0
    assert "not sufficient: 2181 documents are needed" in capsys.readouterr().out


def test_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[1:] == [
        "difference to detect: 0.03",
        "standard deviations: 0.5, 0.5",
        "correlation: 0.5",
        "significance level: 0.05",
        "wanted power: 0.8",
        "minimum n: 2181",
    ]


@for_each(
    ("arguments", "needed"),
    [
        (["--std-a", "0.4"], 1396),
        (["--std_b", "0.3"], 785),
        (["--std-a", "0.5", "--std-b", "0.35", "--correlation", "0.2"], 2639),
        (["--alpha", "0.01", "--power", "0.9"], 4134),
        (["--effect_size", "0.05"], 785),
    ],
)
def test_parameters(arguments: list[str], needed: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", *arguments]) == 0
    assert f"minimum n: {needed}" in capsys.readouterr().out


@for_each(
    ("arguments", "message"),
    [
        (["--alpha", "x"], "--alpha: invalid float value: 'x'"),
        (["--alpha", "1.5"], "alpha must lie between 0 and 1"),
        (["--effect-size", "0"], "effect size must be a number above 0"),
        (["--clusters", "0"], "the size of clusters must be"),
        (["--clusters", "4:x"], "--clusters 4:x: write it as SIZE[:ICC]"),
        (["--clusters", "4:0.1:2"], "write it as SIZE[:ICC]"),
        (["--tests", "0"], "the number of tests must be at least 1"),
        (["--from", "no_such_run"], "no_such_run: no such file or folder"),
        (["--sigma", "1"], "unrecognized arguments: --sigma 1"),
    ],
)
def test_mistakes(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_tests_and_clusters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", "--tests", "10", "--clusters", "5:0.3"]) == 0
    said = capsys.readouterr().out
    assert "minimum n: 8136" in said and "minimum clusters: 1628" in said
    assert "tests: 10, each at 0.005" in said and "the variance is 2.2 times" in said


def run_with_repeats(tmp_path: Path, **entry: object) -> str:
    split = {"n": 400, "questions": 0.1, "answers": 0.15, "judge": None, **entry}
    path = tmp_path / "20260101_000000_results.json"
    path.write_text(json.dumps({"results": {}, "variance": {"quiz": {"acc,none": split}}}))
    return str(path)


def test_the_best_number_of_repeats_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_with_repeats(tmp_path)
    assert main(["power", "--from", run, "--effect-size", "0.06"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "quiz acc,none: variance 0.1 of questions, 0.15 of answers; 400 documents" in lines
    rows = {int(line.split()[0]): line for line in lines if line.split() and line.split()[0].isdecimal()}
    assert rows[1].endswith("more than 400 documents")
    (best,) = (row for row in rows.values() if row.endswith("best"))
    n, k = int(best.split()[1]), int(best.split()[0])
    assert n <= 400 and f"{n * k}" == best.split()[2]
    assert main(["power", "--from", run, "--effect-size", "0.01"]) == 0
    assert "no number of repeats is enough for 400 documents" in capsys.readouterr().out


@for_each(
    ("entry", "arguments", "message"),
    [
        ({"answers": None}, [], "no task has a variance of answers; name a run with --repeats 2 or more"),
        ({}, ["--tasks", "other"], "no repeats of a task 'other'; there are: quiz"),
        ({}, ["--price", "1:2:3"], "write it as QUESTION:ANSWER"),
        ({}, ["--price", "0:0"], "prices must be numbers of at least 0"),
    ],
)
def test_runs_that_cannot_be_planned_from(
    tmp_path: Path, entry: dict[str, object], arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["power", "--from", run_with_repeats(tmp_path, **entry), *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def test_documents_that_a_run_asks_until_a_rule_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", "--until", "halfwidth<=0.05", "--documents", "200", "--score", "0.9"]) == 0
    lines = capsys.readouterr().out.splitlines()
    middle, late = (int(line.split(":")[1].split("(")[0].split()[-1]) for line in lines[1:3])
    assert 80 < middle <= late < 200
    assert lines[3].endswith("40 of 40 random orders")
    assert main(["power", "--until", "decided:0.5", "--documents", "60", "--score", "0.5"]) == 0
    assert "median: 60 (100%)" in capsys.readouterr().out


@for_each(
    ("arguments", "message"),
    [
        (["--until", "soon", "--documents", "9"], "soon"),
        (["--until", "decided:BASELINE", "--documents", "9"], "give one rule"),
        (["--until", "decided:0.5"], "--until needs --documents N"),
        (["--until", "decided:0.5", "--documents", "9", "--tasks", "mme"], "neither --from nor --tasks"),
        (["--until", "decided:0.5", "--documents", "1"], "give at least 2"),
        (["--until", "decided:0.5", "--documents", "9", "--score", "2"], "a score from 0 to 1"),
    ],
)
def test_rules_that_cannot_be_simulated(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
