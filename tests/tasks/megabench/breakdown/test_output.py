import json

import pytest

from lmms_eval.errors import DataError
from lmms_eval.plots import figure
from lmms_eval.plots.figure import PlotUnavailable
from lmms_eval.tasks.megabench.breakdown.output import derive, derive_single_image, plot, table
from lmms_eval.tasks.megabench.facts import demo_labels, labels, tasks


def scored(subset, score=0.5, only=None):
    """The evaluator's output for a subset, every task with the same score."""
    chosen = [task for task in tasks().values() if task.subset == subset and (only is None or task.name in only)]
    return {
        "data": [
            {
                "task_name": task.name,
                "example_info": {"example_text": "Example 1:" * task.demonstrations, "image_paths": []},
                "query_response": [{}] * task.queries,
                "mean_task_score": score,
                "eval_type": "rule" if subset == "core" else "llm",
            }
            for task in chosen
        ]
    }


@pytest.fixture
def folder(tmp_path):
    for subset, score in (("core", 0.25), ("open", 0.75)):
        (tmp_path / f"megabench_{subset}_data_with_scores.json").write_text(json.dumps(scored(subset, score)))
    return tmp_path


def test_the_full_set(folder):
    found = derive(folder)
    summary = json.loads((folder / "analysis" / "summary_and_keyword_stats.json").read_bytes())
    assert summary == found.as_dict()
    assert summary["model_summary"]["core"] == {
        "num_eval_tasks": 440,
        "num_eval_samples": 6531,
        "macro_mean_score": 0.25,
    }
    assert summary["model_summary"]["overall_score"] == pytest.approx((440 * 0.25 + 65 * 0.75) / 505)
    assert found.warnings() == []
    assert len(json.loads((folder / "analysis" / "task_results.json").read_bytes())) == 505
    assert "CI95" in table(found)
    samples = sum(keyword["num_samples"] for keyword in summary["keyword_stats"]["app"].values())
    assert samples == 8172  # with the demonstrations


def test_the_demonstration_is_broken_down_by_its_own_labels(tmp_path):
    result = {"example_info": {}, "query_response": [{}], "mean_task_score": 1.0, "eval_type": "rule"}
    scores = {"data": [{**result, "task_name": name} for name in demo_labels()]}
    (tmp_path / "megabench_demo_data_with_scores.json").write_text(json.dumps(scores))
    found = derive(tmp_path)
    assert found.core is not None
    assert (found.core.tasks, found.unknown) == (len(demo_labels()), ())
    assert found.keywords["app"]["Perception"].tasks == len(demo_labels())


def test_single_image_results_come_from_a_full_run(folder, tmp_path):
    derive(folder)
    found = derive_single_image(folder, tmp_path / "si")
    assert found.core is not None
    assert found.open is not None
    assert (found.core.tasks, found.open.tasks) == (273, 42)
    results = json.loads((tmp_path / "si" / "task_results.json").read_bytes())
    kinds = [result["eval_type"] for result in results]
    assert kinds == sorted(kinds, key=("rule", "llm").index)
    assert all(labels()[result["name"]].visual_inputs == "1-image" for result in results)


def test_single_image_results_need_both_kinds(tmp_path):
    (tmp_path / "megabench_core_data_with_scores.json").write_text(json.dumps(scored("core")))
    derive(tmp_path)
    with pytest.raises(DataError, match="both kinds"):
        derive_single_image(tmp_path, tmp_path / "si")
    assert not (tmp_path / "si").exists()


def test_a_partial_run_is_marked(tmp_path):
    name = next(iter(tasks()))
    (tmp_path / "megabench_core_data_with_scores.json").write_text(json.dumps(scored("core", only={name})))
    assert any("core: 1 tasks" in warning for warning in derive(tmp_path).warnings())


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(DataError, match="there is no folder"):
        derive(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_the_plot_is_two_files_and_the_same_each_time(folder, tmp_path):
    pytest.importorskip("matplotlib")
    found = derive(folder)
    first = [path.read_bytes() for path in plot(found, tmp_path / "a", "model")]
    second = [path.read_bytes() for path in plot(found, tmp_path / "b", "model")]
    assert first == second
    assert first[0].startswith(b"\x89PNG")
    assert b"<svg" in first[1]


def test_without_matplotlib_the_message_says_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(PlotUnavailable, match=figure.INSTALL.split(" (")[0]):
        plot(derive(folder), folder, "model")


def test_the_table_has_a_fixed_column_only_where_something_differs(folder):
    path = folder / "megabench_core_data_with_scores.json"
    assert "Fixed" not in table(derive(folder))
    content = json.loads(path.read_bytes())
    content["data"][0]["fixed_mean_task_score"] = 1.0
    path.write_text(json.dumps(content))
    lines = table(derive(folder)).splitlines()
    assert "Fixed" in lines[0]
    core = next(line for line in lines if "summary" in line)
    assert f"{(439 * 0.25 + 1) / 440:.4f}" in core
    assert "0.2500" in core
    results = json.loads((folder / "analysis" / "task_results.json").read_bytes())
    assert all("fixed" not in result for result in results)
    intervals = json.loads((folder / "analysis" / "keyword_intervals.json").read_bytes())
    assert intervals["model_summary"]["core"]["fixed"] == pytest.approx((439 * 0.25 + 1) / 440)
