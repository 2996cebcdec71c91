import json

import pytest

from lmms_eval.errors import DataError
from lmms_eval.storage.atomic import read_json
from lmms_eval.tasks.megabench.breakdown.merge import TaskMean, merge, read_folder, read_scores
from tests.cases import for_each


def scored(name, mean, eval_type="rule", **more):
    entry = {"task_name": name, "mean_task_score": mean, "eval_type": eval_type, "query_response": [{}, {}]}
    return {**entry, "example_info": {"example_text": "", "image_paths": []}, **more}


def listed(**changes):
    return {"name": "a", "score": 0.25, "eval_type": "llm", "num_demo": 1, "num_query": 7, **changes}


def without(entry, key):
    return {name: value for name, value in entry.items() if name != key}


def test_a_scored_file_is_refined():
    entry = scored("a", 0.5, example_info={"example_text": "Example 1:", "image_paths": []})
    assert read_scores({"data": [entry, scored("b", 1)]}, "file") == [
        TaskMean("a", 0.5, "rule", 1, 2),
        TaskMean("b", 1, "rule", 0, 2),
    ]


def test_a_demonstration_may_be_pictures_only():
    (result,) = read_scores({"data": [scored("a", 0, example_info={"image_paths": ["x.png"]})]}, "file")
    assert result.num_demo == 1


def test_tasks_without_a_score_are_left_out():
    skipped = {"task_name": "a", "query_response": []}
    assert read_scores({"data": [scored("a", -1), skipped]}, "file") == []
    assert read_scores([listed(score=-1)], "file") == []


def test_a_list_is_taken_as_it_is():
    assert read_scores([listed()], "file") == [TaskMean("a", 0.25, "llm", 1, 7)]


@for_each(
    ("content", "message"),
    [
        ({"tasks": []}, "neither"),
        ("text", "neither"),
        ({"data": [3]}, "entry 0"),
        ({"data": [without(scored("a", 0.5), "eval_type")]}, "task 'a': no eval_type"),
        ({"data": [without(scored("a", 0.5), "example_info")]}, "task 'a': no example_info"),
        ({"data": [scored("a", 0.5, example_info=None)]}, "task 'a': no example_info"),
        ({"data": [without(scored("a", 0.5), "query_response")]}, "query_response must be a list, not NoneType"),
        ({"data": [scored("a", "high")]}, "mean_task_score must be a number"),
        ({"data": [scored("a", None)]}, "mean_task_score must be a number"),
        ([without(listed(), "name")], "no name"),
        ([without(listed(), "score")], "score must be a number"),
        ([listed(score=None)], "score must be a number"),
        ([without(listed(), "num_demo")], "num_demo must be a number"),
        ([without(listed(), "num_query")], "num_query must be a number"),
    ],
)
def test_what_cannot_be_used_is_named(content, message):
    with pytest.raises(DataError, match=message):
        read_scores(content, "file")


def test_a_judged_result_replaces_a_rule_one_in_its_place():
    rule, judged, other = (
        TaskMean("a", 0, "rule", 0, 1),
        TaskMean("a", 1, "llm", 0, 1),
        TaskMean("b", 0, "rule", 0, 1),
    )
    assert merge([[rule, other], [judged]]) == [judged, other]
    assert merge([[judged, other], [rule]]) == [judged, other]


def test_a_folder_is_read_in_order_of_names_and_decoys_are_passed_over(tmp_path):
    for name, score in (("megabench_b_data_with_scores.json", 0.2), ("megabench_a_data_with_scores_2.json", 0.1)):
        (tmp_path / name).write_text(json.dumps({"data": [scored("t", score)]}))
    for name in ("data_with_scores.json", "megabench_data_with_scores.json.tmp"):
        (tmp_path / name).write_text(json.dumps({"data": [scored("decoy", 1)]}))
    assert read_folder(tmp_path) == [TaskMean("t", 0.1, "rule", 0, 2)]


def test_an_empty_folder_is_an_error(tmp_path):
    with pytest.raises(DataError, match="no file named like"):
        read_folder(tmp_path)


def test_a_file_that_was_cut_short_is_named(tmp_path):
    path = tmp_path / "megabench_core_data_with_scores.json"
    path.write_text('{"data": [')
    with pytest.raises(DataError, match=r"megabench_core_data_with_scores\.json is no complete JSON"):
        read_json(path)
