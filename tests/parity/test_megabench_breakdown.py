from __future__ import annotations

import copy
import itertools
from pathlib import Path
from typing import Any

from lmms_eval.tasks.megabench.facts import labels
from tests.cases import for_each
from tests.parity.adapters.megabench_breakdown import MINUS_ONE, analysis, merged
from tests.parity.replay import line_state, states, write_json

FILE = "megabench_core_data_with_scores.json"
NAMES = list(itertools.islice(labels(), 3))
LINES = "megabench/breakdown.jsonl"


def listed(name: str, score: float) -> dict[str, Any]:
    return {"name": name, "score": score, "eval_type": "rule", "num_demo": 1, "num_query": 2}


def case(root: Path, entries: list[dict[str, Any]], **folders: dict[str, Any]) -> None:
    folder = root / "megabench_pipeline" / "breakdown" / "case_x"
    write_json(folder, f"input/{FILE}", entries)
    for name, files in folders.items():
        for file, content in files.items():
            write_json(folder, f"{name}/{file}", content)


RIGHT = analysis(merged({FILE: [listed(NAMES[0], 0.5), listed(NAMES[1], 0.25)]}), labels())


def with_minus_one() -> dict[str, Any]:
    """What the reference writes where a list holds a score of -1 for a third task."""
    files = copy.deepcopy(RIGHT)
    files["task_results.json"].append(listed(NAMES[2], -1))
    core = files["summary_and_keyword_stats.json"]["model_summary"]["core"]
    core |= {"num_eval_tasks": 3, "num_eval_samples": 6, "macro_mean_score": -0.25 / 3}
    return files


def test_the_corrected_files_of_a_breakdown_are_met(tmp_path: Path) -> None:
    entries = [listed(name, score) for name, score in zip(NAMES, (0.5, 0.25, -1), strict=True)]
    case(tmp_path, entries, expected=with_minus_one(), expected_wanted=RIGHT)
    assert states(tmp_path) == ["passed", "passed", MINUS_ONE, MINUS_ONE]
    tampered = copy.deepcopy(RIGHT)
    tampered["task_results.json"][0]["score"] = 0.75
    case(tmp_path, entries, expected_wanted=tampered)
    assert states(tmp_path) == ["passed", "failed", MINUS_ONE, MINUS_ONE]


def test_a_superseded_breakdown_may_differ_only_where_the_corrected_one_does(tmp_path: Path) -> None:
    entries = [listed(name, score) for name, score in zip(NAMES, (0.5, 0.25, -1), strict=True)]
    case(tmp_path, entries, expected=RIGHT, expected_wanted=RIGHT)
    assert states(tmp_path) == ["passed"] * 4
    tampered = {"expected": with_minus_one(), "expected_wanted": copy.deepcopy(RIGHT)}
    for files in tampered.values():
        files["task_results.json"][1]["num_query"] = 3
        files["summary_and_keyword_stats.json"]["keyword_stats"]["app"] = {}
    case(tmp_path, entries, **tampered)
    assert states(tmp_path) == ["failed"] * 4


def reordered(files: dict[str, Any]) -> dict[str, Any]:
    other = copy.deepcopy(files)
    other["task_results.json"].reverse()
    tables = other["summary_and_keyword_stats.json"]["keyword_stats"]
    tables["skills"] = dict(reversed(tables["skills"].items()))
    return other


def test_order_counts_where_the_input_is_a_single_file(tmp_path: Path) -> None:
    entries = [listed(NAMES[0], 0.5), listed(NAMES[1], 0.25)]
    assert len(RIGHT["summary_and_keyword_stats.json"]["keyword_stats"]["skills"]) > 1
    case(tmp_path, entries, expected=reordered(RIGHT))
    assert states(tmp_path) == ["failed", "failed"]
    write_json(tmp_path / "megabench_pipeline" / "breakdown" / "case_x", f"input/second_{FILE}", [])
    assert states(tmp_path) == ["passed", "passed"]


META = {"skills": ["s", "t"], "input_format": "i", "output_format": "o", "num_input": "1-image", "app": "p"}


def scored(name: str, **changes: Any) -> dict[str, Any]:
    entry = {"task_name": name, "mean_task_score": 0.5, "eval_type": "rule", "query_response": [{}]}
    return {**entry, "example_info": {"example_text": "", "image_paths": []}, **changes}


def breakdown_line(files: dict[str, Any]) -> dict[str, Any]:
    keyword = {"count": 2, "num_samples": 2, "tasks": [], "average_score": 0.5}
    tables = {"skills": {"t": keyword, "s": keyword}, "input_format": {"i": keyword}, "output_format": {"o": keyword},
              "input_num": {"1-image": keyword}, "app": {"p": keyword}}  # fmt: skip
    core = {"num_eval_tasks": 2, "num_eval_samples": 2, "macro_mean_score": 0.5}
    result = {"score": 0.5, "eval_type": "rule", "num_demo": 0, "num_query": 1}
    return {
        "files": files,
        "task_meta": {"a": META, "b": META},
        "expected_task_results": [{"name": "b", **result}, {"name": "a", **result}],
        "expected": {
            "model_summary": {"core": core, "open": None, "overall_score": 0.5},
            "keyword_stats": tables,
        },
    }


def test_all_files_of_a_line_are_merged_in_any_order(tmp_path: Path) -> None:
    two = {f"megabench_{name}_data_with_scores.json": {"data": [scored(name)]} for name in "ab"}
    line = breakdown_line({**two, "data_with_scores.json": {"data": [scored("decoy")]}})
    assert line_state(tmp_path, LINES, line) == "passed"
    for part, key in (("expected_task_results", 0), ("expected", "model_summary")):
        tampered = copy.deepcopy(line)
        tampered[part][key]["score"] = 0.75
        assert line_state(tmp_path, LINES, tampered) == "failed"


@for_each("key", ["eval_type", "example_info", "query_response", "task_name"])
def test_an_expected_error_means_that_the_files_are_refused(tmp_path: Path, key: str) -> None:
    damaged = {name: value for name, value in scored("a").items() if name != key}
    line = {"files": {FILE: {"data": [damaged]}}, "task_meta": {"a": META}, "expected": {"error": "KeyError"}}
    assert line_state(tmp_path, LINES, line) == "passed"
    line["files"] = {FILE: {"data": [scored("a")]}}
    assert line_state(tmp_path, LINES, line) == "failed"
