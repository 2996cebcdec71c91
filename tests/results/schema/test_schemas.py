from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmms_eval.cli.main import main
from lmms_eval.results.schema import FOLDER, TYPES, schema_file, schema_text
from tests.cases import for_each
from tests.results.schema.checking import checked
from tests.servers.stub import StubServer
from tests.tasks.mmie.kit import judged_data, words

DEMOS = ("megabench_demo", "milebench_demo", "general_bench_demo")


@for_each("name", TYPES)
def test_a_schema_is_that_of_its_types(name: str):
    assert schema_file(name).read_text(encoding="utf-8") == schema_text(name), "stale: run make schemas"


def test_nothing_else_lies_beside_the_schemas():
    assert {path.name for path in FOLDER.iterdir()} == {schema_file(name).name for name in TYPES}


@pytest.mark.parametrize("task", DEMOS)
def test_demonstrations_fit_in_every_key(tmp_path: Path, task: str):
    command = ["--model", "baseline", "--model_args", "strategy=gold", "--tasks", task, "--limit", "4"]
    assert main(["eval", *command, "--output_path", str(tmp_path), "--log_samples"]) == 0
    counts = checked(tmp_path)
    assert counts["results"] == counts["run"] == 1
    assert counts["sample"] == counts["response"] == counts["score"] > 3
    [document] = [json.loads(path.read_text(encoding="utf-8")) for path in tmp_path.glob("*_results.json")]
    assert set(document) <= set(TYPES["results"].__struct_encode_fields__), (
        "a part of a benchmark that the type does not name"
    )


def test_judged_runs_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    judged_data(tmp_path / "data")
    with StubServer() as model, StubServer() as judge:
        main(["eval", *words(tmp_path / "data", tmp_path / "out", model, judge, "--judge_repeats", "2")])
    counts = checked(tmp_path / "out")
    assert counts["results"] == 1
    assert min(counts["judgement"], counts["sample"], counts["score"]) > 3
