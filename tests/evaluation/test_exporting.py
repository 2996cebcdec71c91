from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lmms_eval.api.request import Request, Response
from lmms_eval.config import RunConfig
from lmms_eval.evaluation.run import VARIABLES, exported, run
from lmms_eval.evaluation.writing import RunReport
from tests.evaluation.kit import Told, config
from tests.tasks.linguistic_kit import NLTK_DATA, needs_nltk_data
from tests.tasks.megabench.rows_for_tests import document

PARIS = {"country": "France", "province_or_state": "IDF", "municipality": "Paris"}
POEMS = {
    "field_score_function": {"##poem": "constrained_generation"},
    "aggregation": {"function": "mean", "field_weights": {"##poem": 1}},
    "response_parse_function": "dummy",
}
PLACES = {
    "field_score_function": {"country": "exact_str_match"},
    "aggregation": {"function": "mean", "field_weights": {"country": 1, "proximity": 3}},
    "response_parse_function": "json",
    "global_aux_metrics": {"proximity": "geo_proximity_location_dict"},
}
TEXT = {"example_text": "", "example_media": [], "query_text": "Write.", "query_media": []}


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def test_variables_are_set_for_the_run_and_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NLTK_DATA", "/before")
    given = RunConfig(nltk_data="/during", datasets_cache="/cache", geocode_table="places.json", judge_prompts="p.py")
    before = {name for name in os.environ if name.startswith("LMMS_EVAL")}
    with exported(given):
        assert (os.environ["NLTK_DATA"], os.environ["HF_DATASETS_CACHE"]) == ("/during", "/cache")
        assert {name for name in os.environ if name.startswith("LMMS_EVAL")} == before
    assert os.environ["NLTK_DATA"] == "/before" and "HF_DATASETS_CACHE" not in os.environ
    with pytest.raises(KeyError), exported(given):
        raise KeyError
    assert os.environ["NLTK_DATA"] == "/before" and "HF_DATASETS_CACHE" not in os.environ
    with exported(RunConfig()):
        assert os.environ["NLTK_DATA"] == "/before"


def test_options_for_tasks_are_those_given_with_absolute_files() -> None:
    given = RunConfig(nltk_data="a:b", geocode_table="places.json", geocoder="nominatim", judge_prompts="p.py")
    assert given.for_tasks() == {
        "judge_prompts": str(Path.cwd() / "p.py"),
        "nltk_data": "a:b",
        "geocode_table": str(Path.cwd() / "places.json"),
        "geocoder": "nominatim",
    }
    assert RunConfig().for_tasks() == {}


def test_each_option_has_its_variable() -> None:
    from lmms_eval.config.options import options

    declared = {option.name: option.variables for option in options()}
    assert all(variable in declared[name] for name, variable in VARIABLES.items())


def write_core(folder: Path) -> None:
    """Two questions of two tasks of the official data set's form."""
    rows: list[dict[str, Any]] = [
        document(id="1", task_name="poems", metric_info=POEMS, answer={"##poem": ""},
                 eval_context={"contain1##times": "[wolf]##2"}, **TEXT),
        document(id="2", task_name="places", metric_info=PLACES, answer=PARIS, **TEXT),
    ]  # fmt: skip
    (folder / "core").mkdir(parents=True)
    (folder / "data").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), folder / "core" / "test-00000.parquet")


def answers(request: Request) -> Response:
    texts = ["A wolf sings.\nThe wolves listen.", f"Answer: {PARIS}"]
    return Response(request.id, text=texts[request.doc_id])


def evaluate(tmp: Path, model: Told, **over: Any) -> RunReport:
    return run(
        config(
            tmp,
            model="told",
            model_args="step=1",
            tasks="megabench_core",
            include_path=None,
            data_root=str(tmp / "data"),
            score_workers=1,
            bootstrap_iters=0,
            **over,
        ),
        model,
    )


def outcomes(report: RunReport) -> Any:
    return report.results["outcomes"]["megabench_core"]


@needs_nltk_data
def test_options_reach_the_scoring_processes_and_the_scores_key(tmp_path: Path) -> None:
    write_core(tmp_path / "data")
    table = tmp_path / "places.json"
    first = Told(answers)
    without = evaluate(tmp_path, first, resume=True)
    assert len(first.asked) == 2
    assert without.results["results"]["megabench_core"]["macro_mean,none"] is None
    assert outcomes(without)["unscored"] == 2
    table.write_text(json.dumps({"complete": True, "entries": []}))
    given = {"nltk_data": str(NLTK_DATA), "geocode_table": str(table), "resume": True}
    second = Told(answers)
    absent = evaluate(tmp_path, second, **given)
    assert absent.results["results"]["megabench_core"]["macro_mean,none"] == pytest.approx((1 + 1 / 4) / 2)
    table.write_text(
        json.dumps([{"query": {"country": "France", "state": "IDF", "city": "Paris"}, "lat": 48.9, "lon": 2.4}])
    )
    third = evaluate(tmp_path, second, **given)
    assert not any(name.startswith("LMMS_EVAL_GEOCODE") for name in os.environ)
    assert third.results["results"]["megabench_core"]["macro_mean,none"] == pytest.approx(1)
    assert second.asked == []
