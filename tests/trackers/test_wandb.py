"""Weights & Biases without network: what its files hold afterwards is what the results say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lmms_eval.config.tracking import WANDB
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.writing import RunReport
from tests.evaluation.kit import NAME, Told, config, fails_on, right, tasks
from tests.installed import needs
from tests.trackers.kit import PICTURES, eval_row, numbers_of, place_of, with_pictures
from tests.trackers.stored import StoredRun, wandb_run

needs("wandb")
ROOT = Path(__file__).parents[2]
SECRET = "canary-4f1a77-canary"


@pytest.fixture(autouse=True)
def _offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WANDB_DATA_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "wandb_home"))
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.delenv("WANDB_API_KEY", raising=False)


def tracked(tmp: Path, model: Any = None, **over: Any) -> RunReport:
    arguments = f"project=birds,name=007,tags=[a,b],dir={tmp}"
    return run(config(tmp, model="told", **{"wandb_args": arguments, **over}), model or Told())


def stored(report: RunReport) -> StoredRun:
    return wandb_run(place_of(report, "wandb"))


def table(report: RunReport, run: StoredRun, name: str) -> dict[str, Any]:
    """The file of a table, as the package wrote it."""
    return json.loads(
        (Path(report.results["trackers"]["wandb"]["folder"]) / "files" / run.summary[f"{name}/path"]).read_text()
    )


def test_its_run_holds_the_results(tmp_path: Path) -> None:
    report = tracked(tmp_path)
    found = stored(report)
    assert (found.project, found.name, found.exit_code) == ("birds", "007", 0)
    numbers = numbers_of(report)
    assert numbers == {name: found.summary[name] for name in numbers}
    assert found.summary[f"{NAME}/alias"] == NAME
    assert found.summary["state"] == report.results["state"] == "complete"
    assert found.config["task_configs"] == json.loads(json.dumps(report.results["configs"]))
    assert found.config["cli_configs"]["model"] == "told"
    assert json.loads(found.artifacts["results"]["results.json"].read_text())["results"] == report.results["results"]
    shown = table(report, found, "evaluation/eval_results")
    assert shown["columns"] == ["Tasks", "Version", "Filter", "num_fewshot", "Metric", "Value", "Stderr"]
    assert shown["data"] == [eval_row(report)]


def test_live_numbers_are_steps(tmp_path: Path) -> None:
    (live,) = [step for step in stored(tracked(tmp_path, Told(fails_on(2)))).history if "live/documents" in step]
    assert (live["live/documents"], live["live/failed"]) == (6, 1)
    assert (live[f"live/{NAME}/score"], live[f"live/{NAME}/n"]) == (1.0, 5)


def test_the_line_below_the_table_says_how_to_send_it(tmp_path: Path) -> None:
    report = tracked(tmp_path)
    folder = report.results["trackers"]["wandb"]["folder"]
    assert f"wandb: {folder} (send it with: wandb sync {folder})" in report.lines
    (file,) = tmp_path.rglob("*_results.json")
    assert json.loads(file.read_text())["trackers"] == report.results["trackers"]


def test_samples_go_as_table_and_file(tmp_path: Path) -> None:
    report = tracked(tmp_path, Told(fails_on(4)), wandb_log_samples=True, log_samples=True, error_budget=0.5)
    found = stored(report)
    shown = table(report, found, f"samples/{NAME}")
    rows = [dict(zip(shown["columns"], row, strict=True)) for row in shown["data"]]
    assert [row["doc_id"] for row in rows] == ["0", "1", "2", "3", "4", "5"]
    assert [row["status"] for row in rows if row["status"] != "scored"] == ["failed"]
    assert rows[0]["exact_match"] == 1.0
    (file,) = tmp_path.rglob("*_samples_*.jsonl")
    assert found.artifacts[f"samples_{NAME}"][file.name].read_bytes() == file.read_bytes()


def test_samples_show_small_pictures(tmp_path: Path) -> None:
    report = with_pictures(tmp_path, wandb_args=f"project=p,dir={tmp_path}", wandb_log_samples=True)
    name = f"samples/{PICTURES}.table.json"
    (files,) = [files for files in stored(report).artifacts.values() if name in files]
    shown = json.loads(files[name].read_text())
    assert len(shown["data"]) == 3
    for row in shown["data"]:
        picture = dict(zip(shown["columns"], row, strict=True))["picture_1"]
        with Image.open(files[picture["path"]]) as image:
            assert 0 < max(image.size) <= 512


def test_without_the_option_no_sample_leaves(tmp_path: Path) -> None:
    assert not [name for name in stored(tracked(tmp_path, log_samples=True)).summary if "samples" in name]


def test_an_interrupted_run_goes_on_as_the_same_one(tmp_path: Path) -> None:
    first = tracked(tmp_path, Told(fails_on(1, 2, 3)), wandb_args=f"project=birds,dir={tmp_path}")
    assert first.results["state"] == "withheld"
    one = stored(first)
    assert one.exit_code == 1
    assert f"{NAME}/exact_match" not in one.summary
    model = Told(right)
    second = tracked(tmp_path, model, wandb_args=f"project=birds,dir={tmp_path}")
    two = stored(second)
    assert sorted(model.asked) == [1, 2, 3]
    assert (two.id, two.name, two.exit_code) == (one.id, one.name, 0)
    assert two.summary[f"live/{NAME}/n"] == 6
    anew = stored(tracked(tmp_path, wandb_args=f"project=birds,dir={tmp_path}"))
    assert anew.id != one.id


def test_a_tracker_that_cannot_start_ends_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    report = tracked(tmp_path)
    assert report.exit_code == 0
    told = report.results["trackers"]["wandb"]
    assert told["state"] == "failed"
    assert "No API key" in told["error"]
    (line,) = [line for line in report.lines if line.startswith("wandb failed: ")]
    assert line.endswith("the results here are complete")


def test_no_secret_is_stored(tmp_path: Path) -> None:
    said = Told(lambda request: right(request).__class__(request.id, text=f"the key is {SECRET}"))
    report = tracked(tmp_path, said, wandb_log_samples=True, log_samples=True, model_args=f"api_key={SECRET}")
    stored(report)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.suffix == ".wandb" for path in files)
    assert [path for path in files if SECRET.encode() in path.read_bytes() and "/.runs/" not in str(path)] == []


def test_of_several_processes_the_first_one_tells_the_numbers_of_all(tmp_path: Path) -> None:
    tasks(tmp_path, 40)
    arguments = [
        "-m", "lmms_eval", "--model", "baseline", "--tasks", NAME, "--include_path", str(tmp_path / "tasks"),
        "--output_path", str(tmp_path / "out"), "--processes", "2", "--wandb_args", f"project=p,dir={tmp_path}",
    ]  # fmt: skip
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "wandb").glob("offline-run-*")
    found = wandb_run(folder)
    assert (found.summary["live/documents"], found.summary[f"live/{NAME}/n"]) == (40, 40)
    assert found.summary["state"] == "complete"


def test_the_keys_are_those_of_the_package() -> None:
    import inspect

    import wandb

    assert set(WANDB.keys) <= set(inspect.signature(wandb.init).parameters)
