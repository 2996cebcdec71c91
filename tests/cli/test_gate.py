from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

from lmms_eval.cli.main import main
from tests.cases import for_each

DOC = Path(__file__).parents[2] / "docs" / "compare.md"


def _samples(path: Path, scores: dict[str, list[float]]) -> Path:
    """A run's folder: results, and samples of each task."""
    path.mkdir()
    whole = {"results": {}, "configs": {task: {} for task in scores}, "run_key": "k"}
    (path / "20260101_000000_results.json").write_text(json.dumps(whole))
    for task, values in scores.items():
        metric = "anls" if task == "captions" else "acc"
        lines = [
            json.dumps({"doc_id": number, "filtered_resps": "x", "target": "y", "filter": "none", metric: value})
            for number, value in enumerate(values)
        ]
        (path / f"20260101_000000_samples_{task}.jsonl").write_text("\n".join(lines) + "\n")
    return path


def _policy(tmp_path: Path, text: str) -> str:
    (tmp_path / "policy.yaml").write_text(text)
    return str(tmp_path / "policy.yaml")


RIGHT = [1.0, 1.0, 1.0, 0.0] * 100
SAME = [1.0, 1.0, 0.0, 1.0] * 100
WORSE = [0.0, 1.0, 0.0, 0.0] * 100


@for_each(
    ("scores", "code"),
    [(RIGHT, 0), ([*RIGHT[:-4], 0, 0, 1, 0], 0), (WORSE, 4), (RIGHT[:2], 5), ([0.0] * 12 + RIGHT[12:], 5)],
    ids=["same", "a few", "far worse", "two documents", "not settled"],
)
def test_exit_code_says_what_was_found(tmp_path, capsys, scores, code):
    base = _samples(tmp_path / "base", {"quiz": RIGHT[: len(scores)]})
    run = _samples(tmp_path / "run", {"quiz": scores})
    policy = _policy(tmp_path, "tasks: [quiz]\nmargin: 0.03\n")
    assert main(["gate", "--policy", policy, str(run), str(base)]) == code
    printed = capsys.readouterr().out
    assert {0: "HELD", 4: "FELL", 5: "CANNOT TELL"}[code] in printed


def test_policy_of_the_page_as_it_stands(tmp_path, capsys):
    section = DOC.read_text("utf-8").partition("## A gate for CI systems")[2]
    policy = _policy(tmp_path, re.search(r"```yaml\n(.*?)```", section, re.DOTALL)[1])
    captions = [0.2 + 0.6 * (number % 7) / 7 for number in range(400)]
    base = _samples(tmp_path / "base", {"quiz": RIGHT, "captions": captions})
    run = _samples(tmp_path / "run", {"quiz": RIGHT, "captions": captions[::-1]})
    assert main(["gate", "--policy", policy, str(run), str(base), "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["metric"], one["margin"]) for one in found["checks"]] == [
        ("quiz", "acc", 0.05),
        ("captions", "anls", 0.1),
    ]


def test_task_that_a_run_lacks_cannot_be_told(tmp_path, capsys):
    base = _samples(tmp_path / "base", {"quiz": RIGHT, "other": RIGHT})
    run = _samples(tmp_path / "run", {"quiz": RIGHT})
    policy = _policy(tmp_path, "tasks: ['*', nowhere]\nmargin: 0.03\n")
    assert main(["gate", "--policy", policy, str(run), str(base)]) == 5
    printed = capsys.readouterr().out
    assert "does not have this task" in printed
    assert "neither run has such a task" in printed


def test_documents_without_a_score_are_no_pass(tmp_path, capsys):
    base = _samples(tmp_path / "base", {"quiz": RIGHT})
    run = _samples(tmp_path / "run", {"quiz": RIGHT[:380]})
    for coverage, code in (("0.96", 5), ("0.94", 0)):
        policy = _policy(tmp_path, f"tasks: [quiz]\nmargin: 0.05\nminimum_coverage: {coverage}\n")
        assert main(["gate", "--policy", policy, str(run), str(base)]) == code
    assert "95.00 %" in capsys.readouterr().out


def _with_failures(path: Path, scores: list[float], missing: int) -> Path:
    """A run whose first documents failed."""
    run = _samples(path, {"quiz": scores})
    (samples,) = run.glob("*.jsonl")
    lines = [json.loads(line) for line in samples.read_text().splitlines()]
    for line in lines[:missing]:
        del line["acc"]
        line["failed"] = "timeout"
    samples.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run


@for_each(
    ("scores", "missing", "code"),
    [(RIGHT, 4, 0), (RIGHT, 40, 5), (WORSE, 4, 4), ([0.0] * 60 + RIGHT[60:], 4, 4), (WORSE, 280, 5)],
    ids=["held", "held without them", "fell", "fell as well", "fell without them"],
)
def test_an_outcome_holds_whatever_failed_documents_would_score(tmp_path, capsys, scores, missing, code):
    base, run = _samples(tmp_path / "base", {"quiz": RIGHT}), _with_failures(tmp_path / "run", scores, missing)
    policy = _policy(tmp_path, "tasks: [quiz]\nmargin: 0.03\nminimum_coverage: 0.1\n")
    assert main(["gate", "--policy", policy, str(run), str(base), "--json", str(tmp_path / "found.json")]) == code
    (check,) = json.loads((tmp_path / "found.json").read_text())["checks"]
    assert check["missing"] == missing and check["p_missing"][0] >= check["p_held"] >= check["p_missing"][1]
    assert (f"depends on {missing} documents without a score" in capsys.readouterr().out) == (code == 5)


@for_each(
    ("text", "told"),
    [
        ("tasks: [quiz]\nmargn: 0.1\n", "did you mean margin?"),
        ("tasks: {quiz: {metrik: acc}}\nmargin: 0.1\n", "did you mean metric?"),
        ("tasks: [quiz]\n", "no margin"),
        ("margin: 0.1\n", "'tasks' is missing"),
        ("tasks: [quiz]\nmargin: -1\n", "margin"),
        ("tasks: [quiz]\nmargin: .nan\n", "margin"),
        ("tasks: [quiz]\nmargin: 0.1\ncorrection: bonferoni\n", "correction"),
        ("- quiz\n", "keys and values"),
        ("tasks: [", "not valid YAML"),
    ],
)
def test_policy_that_is_wrong_names_the_key_and_ends_with_2(tmp_path, capsys, text, told):
    base = _samples(tmp_path / "base", {"quiz": RIGHT})
    junit = tmp_path / "out.xml"
    assert main(["gate", "--policy", _policy(tmp_path, text), str(base), str(base), "--junit", str(junit)]) == 2
    assert told in capsys.readouterr().err
    assert not junit.exists()


def test_hostile_names_are_shown_as_text(tmp_path, capsys):
    name = "qu\x1b[31miz<b>|&amp;"
    base = _samples(tmp_path / "base", {name: RIGHT})
    run = _samples(tmp_path / "run", {name: WORSE})
    junit, markdown, whole = tmp_path / "o.xml", tmp_path / "o.md", tmp_path / "o.json"
    policy = _policy(tmp_path, "tasks: ['*']\nmargin: 0.03\n")
    files = ["--junit", str(junit), "--markdown", str(markdown), "--json", str(whole)]
    assert main(["gate", "--policy", policy, str(run), str(base), *files]) == 4
    assert "\x1b" not in capsys.readouterr().out + junit.read_text() + markdown.read_text()
    (case,) = ET.parse(junit).getroot().iter("testcase")
    assert "<b>" in case.get("name")
    assert case.find("failure") is not None
    assert "<b>" not in markdown.read_text()
    assert json.loads(whole.read_text())["outcome"] == "fell"


def test_files_do_not_replace_what_is_read(tmp_path, capsys):
    base = _samples(tmp_path / "base", {"quiz": RIGHT})
    run = _samples(tmp_path / "run", {"quiz": RIGHT})
    policy = _policy(tmp_path, "tasks: [quiz]\nmargin: 0.03\n")
    (samples,) = run.glob("*.jsonl")
    for words, told in (
        (["--json", policy], "policy.yaml is read"),
        (["--json", "a", "--junit", "a"], "--junit writes the same file"),
        (["--markdown", str(samples)], "that is a file of the run"),
    ):
        assert main(["gate", "--policy", policy, str(run), str(base), *words]) == 2
        assert told in capsys.readouterr().err


def test_task_of_several_metrics_needs_a_name(tmp_path, capsys):
    base = _samples(tmp_path / "base", {"quiz": RIGHT})
    (file,) = base.glob("*.jsonl")
    file.write_text(file.read_text().replace('"acc"', '"f": 0.5, "acc"'))
    shutil.copytree(base, tmp_path / "run")
    policy = _policy(tmp_path, "tasks: [quiz]\nmargin: 0.03\n")
    assert main(["gate", "--policy", policy, str(tmp_path / "run"), str(base)]) == 2
    assert "name one of them" in capsys.readouterr().err
