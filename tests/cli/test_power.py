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
        (["--sigma", "1"], "unrecognized arguments: --sigma 1"),
    ],
)
def test_mistakes(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", *arguments]) == 2
    assert message in capsys.readouterr().err
