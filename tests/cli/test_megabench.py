"""The stand-alone scripts as users start them: as files, from anywhere, without anything else installed or set."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lmms_eval.cli.main import main
from lmms_eval.tasks.megabench.data import load_rows, parse_row
from lmms_eval.tasks.megabench.facts import tasks
from lmms_eval.tasks.megabench.scoring.query import read_context
from lmms_eval.tasks.megabench.submission import dumps, record
from tests import forks
from tests.cases import for_each
from tests.tasks.megabench.submissions import INFO, entry, query

BENCHMARK = Path(__file__).parents[2] / "lmms_eval" / "tasks" / "megabench"
NAMES = [task.name for task in tasks().values() if task.subset == "core" and task.single_image_first_id][:3]

OPEN = next(task.name for task in tasks().values() if task.subset == "open" and task.single_image_first_id)


def start(script, *arguments, cwd, **environment):
    hidden = {"OPENAI_API_KEY", "MEGABENCH_OPEN_API_KEY", "MEGABENCH_OPEN_API_URL", "MEGABENCH_OPEN_API_MODEL"}
    shown = {key: value for key, value in os.environ.items() if key not in hidden}
    return forks.run(str(BENCHMARK / script), *map(str, arguments), cwd=cwd, env={**shown, **environment})


def row(number, name):
    texts = ("task_description", "example_text", "query_text", "taxonomy_tree_path", "application", "input_format")
    empty = dict.fromkeys((*texts, "output_format"), "") | dict.fromkeys(("global_media", "example_media"), "[]")
    return empty | {
        "id": str(number), "task_name": name, "query_media": "[]", "answer": "{'answer': 'x'}",
        "metric_info": repr(INFO), "eval_context": "{}",
    }  # fmt: skip


@pytest.fixture
def data(tmp_path):
    root = tmp_path / "data"
    for configuration in ("core", "open"):
        (root / configuration).mkdir(parents=True)
        rows = (
            [row(number + 1, NAMES[number // 2]) for number in range(6)] if configuration == "core" else [row(1, "o")]
        )
        pq.write_table(pa.Table.from_pylist(rows), root / configuration / "test.parquet")
    return root


@pytest.fixture
def evaluate(tmp_path, data):
    def run(submission, *more, subset="core"):
        path = tmp_path / "submission.json"
        path.write_text(submission if isinstance(submission, str) else json.dumps(submission))
        return start(
            "evaluator.py", "--subset_name", subset, "--submission_file", path, "--output_file", "scores.json",
            "--data_root", data, *more, cwd=tmp_path,
        )  # fmt: skip

    return run


def full():
    return [entry(query(2 * n + 1), query(2 * n + 2, "Answer: wrong"), name=name) for n, name in enumerate(NAMES)]


def scores(tmp_path):
    return json.loads((tmp_path / "scores.json").read_bytes())


def test_a_submission_is_scored_and_kept_scores_are_not_made_again(tmp_path, evaluate):
    finished = evaluate(full())
    assert finished.returncode == 0, finished.stderr
    assert scores(tmp_path)["summary"] == {
        "macro_mean_score": 0.5,
        "micro_mean_score": 0.5,
        "num_tasks": 3,
        "num_queries": 6,
    }
    first = (tmp_path / "scores.json").read_bytes()
    assert first.startswith(b'{\n    "data": [\n        {\n            "task_name"')
    again = evaluate(full())
    assert again.stdout.count("using cached results") == 3
    assert (tmp_path / "scores.json").read_bytes() == first
    assert "using cached results" not in evaluate(full(), "--force").stdout
    assert not list(tmp_path.glob("*.tmp"))


def test_unknown_tasks_are_named_and_the_rest_is_written(tmp_path, evaluate):
    finished = evaluate([*full(), entry(query(1), name="made_up")])
    assert finished.returncode == 2
    assert "made_up" in finished.stderr
    content = scores(tmp_path)
    assert [error["task_name"] for error in content["errors"]] == ["made_up"]
    assert content["summary"]["num_tasks"] == 3


@pytest.mark.parametrize(
    ("submission", "more", "message"),
    [
        ('[{"task_name": "t", "query', (), "no complete JSON file"),
        ({}, (), "must hold a list of tasks"),
        ([], ("--dataset_name", "Somebody/Else"), "neither TIGER-Lab/MEGA-Bench nor a folder"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(tmp_path, evaluate, submission, more, message):
    finished = evaluate(submission, *more)
    assert finished.returncode == 2
    (line,) = finished.stderr.splitlines()
    assert message in line
    assert not (tmp_path / "scores.json").exists()


def test_a_submission_for_another_subset_is_refused(tmp_path, evaluate):
    finished = evaluate(full(), subset="open")
    assert finished.returncode == 2
    assert "they belong to core" in finished.stderr
    assert not (tmp_path / "scores.json").exists()


def test_an_unknown_subset_is_named(evaluate):
    finished = evaluate(full(), subset="cores")
    assert finished.returncode == 2
    assert "'cores'" in finished.stderr


def test_an_output_file_that_is_something_else_is_not_overwritten(tmp_path, evaluate):
    (tmp_path / "scores.json").write_text("my notes")
    finished = evaluate(full())
    assert finished.returncode == 2
    assert "is not an evaluator's output" in finished.stderr
    assert (tmp_path / "scores.json").read_text() == "my notes"


def test_from_scores_to_the_leaderboards_files(tmp_path, evaluate):
    evaluate(full())
    folder = tmp_path / "results"
    folder.mkdir()
    (tmp_path / "scores.json").rename(folder / "megabench_core_data_with_scores.json")
    finished = start("breakdown/derive_breakdown_results.py", "--input_dir", folder, "--no_plot", cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    assert "overall" in finished.stdout
    assert "core: 3 tasks; the full set has 440" in finished.stderr
    names = {path.name for path in (folder / "analysis").iterdir()}
    assert names == {"task_results.json", "summary_and_keyword_stats.json", "keyword_intervals.json"}
    single = start(
        "breakdown/get_si_subset_from_full.py", "--input_dir", folder, "--output_dir", tmp_path / "si", cwd=tmp_path
    )
    assert single.returncode == 2
    assert "of both kinds" in single.stderr


def test_the_harness_scores_a_submission_by_its_task(tmp_path, data, capsys):
    (tmp_path / "submission.json").write_text(json.dumps(full()))
    words = ["score", "--tasks", "megabench_core", "--submission", str(tmp_path / "submission.json")]
    assert main([*words, "--data_root", str(data), "--workers", "1"]) == 0
    assert '"macro_mean_score": 0.5' in capsys.readouterr().out
    content = json.loads((tmp_path / "megabench_core_data_with_scores.json").read_bytes())
    assert content["summary"]["num_tasks"] == 3


@for_each(
    "words",
    [
        ["score", "--tasks", "megabench_demo", "--submission"],
        ["megabench", "evaluate", "--subset_name", "demo", "--submission_file"],
    ],
)
def test_the_demonstrations_submission_is_scored_from_anywhere(tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    rows = [
        parse_row(found)
        for found in load_rows("core", BENCHMARK / "demo")
        if found["task_name"] == "demo_count_circles"
    ]
    records = [record(found, read_context(found.eval_context), f"Answer: {found.answer['count']}") for found in rows]
    (tmp_path / "submission.json").write_text(dumps(records))
    assert main([*words, "submission.json", "--output_file", "scores.json", "--workers", "1"]) == 0
    assert "demo_count_circles: 1.0000 over 2 queries" in capsys.readouterr().out
    assert scores(tmp_path)["summary"]["num_tasks"] == 1


def test_a_task_without_submissions_is_refused(tmp_path, capsys):
    assert main(["score", "--tasks", "mmlu", "--submission", str(tmp_path / "s.json")]) == 2
    assert "megabench_core" in capsys.readouterr().err


@for_each("action", [["breakdown"], ["single-image", "--output_dir", "out"]])
def test_numbers_alone_need_no_logger(tmp_path, action):
    """What would be logged there would reach the terminal as it is; the import alone takes as long as the work."""
    scores = [
        {"name": name, "score": 0.5, "eval_type": kind, "num_demo": 0, "num_query": 1}
        for name, kind in ((NAMES[0], "rule"), (OPEN, "llm"))
    ]
    (tmp_path / "megabench_data_with_scores.json").write_text(json.dumps(scores))
    (tmp_path / "task_results.json").write_text(json.dumps(scores))
    words = ["megabench", *action, "--input_dir", ".", "--no_plot"]
    script = (
        f"import sys\nfrom lmms_eval.cli.main import main\ncode = main({words!r})\nprint('loguru' in sys.modules, code)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "False 0", done.stderr


def test_a_breakdown_of_nothing_is_an_error(tmp_path):
    finished = start("breakdown/derive_breakdown_results.py", "--input_dir", tmp_path, cwd=tmp_path)
    assert finished.returncode == 2
    assert "no file named like" in finished.stderr
    assert not (tmp_path / "analysis").exists()


@for_each("script", ["evaluator.py", "breakdown/derive_breakdown_results.py"])
def test_help_names_the_flags(script, tmp_path):
    finished = start(script, "--help", cwd=tmp_path)
    assert finished.returncode == 0
    assert ("--submission_file" if script == "evaluator.py" else "--input_dir") in finished.stdout
