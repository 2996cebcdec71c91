"""SwanLab without network: what its files hold afterwards is what the results say."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.config.tracking import SWANLAB
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.writing import RunReport
from lmms_eval.trackers.packages import take_host
from tests.evaluation.kit import NAME, Told, config, fails_on
from tests.installed import needs
from tests.trackers.kit import PICTURES, eval_row, numbers_of, place_of, with_pictures
from tests.trackers.stored import StoredRun, swanlab_run

needs("swanlab")


@pytest.fixture(autouse=True)
def _offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWANLAB_SAVE_DIR", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("SWANLAB_API_KEY", "SWANLAB_PROJECT", "SWANLAB_HOST"):
        monkeypatch.delenv(name, raising=False)


def arguments(tmp: Path) -> str:
    return f"exp_name=first birds,mode=offline,log_dir={tmp / 'swan'}"


def tracked(tmp: Path, model: Any = None, **over: Any) -> RunReport:
    return run(config(tmp, model="told", **{"swanlab_args": arguments(tmp), **over}), model or Told())


def stored(report: RunReport) -> StoredRun:
    return swanlab_run(place_of(report, "swanlab"))


def test_its_run_holds_the_results(tmp_path: Path) -> None:
    report = tracked(tmp_path, Told(fails_on(2)), error_budget=0.5)
    found = stored(report)
    assert (found.project, found.name, found.exit_code) == ("lmms-eval", "first birds", 0)
    numbers = numbers_of(report)
    assert numbers == {name: found.summary[name] for name in numbers}
    assert found.config["task_configs"] == json.loads(json.dumps(report.results["configs"]))
    assert found.config["results"][f"{NAME}/alias"] == NAME
    assert found.config["state"] == "complete"
    live = found.history[0]
    assert (live["live/documents"], live["live/failed"], live[f"live/{NAME}/n"]) == (6, 1, 5)
    (shown,) = found.files["evaluation/eval_results"]
    (row,) = json.loads(shown)["rowData"]
    assert list(row.values()) == eval_row(report)


def test_a_preview_of_ten_samples(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    report = with_pictures(tmp_path, 25, swanlab_args=arguments(tmp_path), swanlab_log_samples=True)
    found = stored(report)
    texts = [content.decode() for content in found.files[f"samples/{PICTURES}"]]
    assert len(texts) == 10
    assert texts[0].startswith("doc_id: 0\n")
    assert {text.partition("\n")[0] for text in texts} == {f"doc_id: {number * 25 // 10}" for number in range(10)}
    assert len(found.files[f"pictures/{PICTURES}"]) == 10


def test_an_interrupted_run_goes_on_as_the_same_one(tmp_path: Path) -> None:
    one = stored(tracked(tmp_path, Told(fails_on(1))))
    assert one.exit_code != 0
    two = stored(tracked(tmp_path))
    assert (two.id, two.exit_code) == (one.id, 0)
    assert two.history[0][f"live/{NAME}/n"] == 6


def test_a_tracker_that_cannot_start_ends_no_run(tmp_path: Path) -> None:
    report = tracked(tmp_path, swanlab_args=f"mode=online,log_dir={tmp_path / 'swan'}")
    told = report.results["trackers"]["swanlab"]
    assert report.exit_code == 0
    assert told["state"] == "failed"
    assert told["error"]


def test_the_server_is_found_by_the_variable_of_the_family() -> None:
    environment = {"SWANLAB_HOST": "https://swan.example"}
    take_host(environment)
    assert environment["SWANLAB_API_HOST"] == "https://swan.example"


def test_the_keys_are_those_of_the_package() -> None:
    import swanlab

    assert set(SWANLAB.keys) <= set(inspect.signature(swanlab.init).parameters)
