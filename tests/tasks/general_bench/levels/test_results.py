import json

import pytest

from lmms_eval.errors import DataError, UsageError
from lmms_eval.tasks.general_bench.levels.registering import files_of, gather
from tests.cases import for_each

RESULT = {"task_name": "Causal Reasoning", "metric": "ACC", "score": 70}


def written(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


@for_each(
    ("name", "content"),
    [
        ("a.json", [RESULT]),
        ("b.json", RESULT),
        ("c.json", {"results": [RESULT]}),
        ("d.jsonl", json.dumps(RESULT) + "\n\n"),
        ("e.csv", "task_name,metric,score\nCausal Reasoning,ACC,70\n"),
        ("f.json", [{"model": "x", "task": "Causal Reasoning", "metric": "ACC", "score": "70"}]),
    ],
)
def test_forms_of_result_files(tmp_path, name, content):
    results, _, problems = gather([written(tmp_path / name, content)])
    assert not problems
    (result,) = results
    assert (result.task_name, result.metric, float(result.score)) == ("Causal Reasoning", "ACC", 70)


@for_each("content", ['[{"task_name": ', "3", '{"a"', "[" * 100_000])
def test_damaged_files_are_named_and_others_read(tmp_path, content):
    bad, good = written(tmp_path / "bad.json", content), written(tmp_path / "good.json", [RESULT])
    results, _, problems = gather([bad, good])
    assert len(results) == 1
    assert len(problems) == 1
    assert str(bad) in problems[0]


@for_each(
    ("entry", "reason"),
    [
        (3, "an object"),
        ({}, "no task_name, metric, score"),
        ({"task_name": "x", "score": 3}, "no metric"),
        ({**RESULT, "items_scored": "few"}, "no whole number"),
    ],
)
def test_bad_entries_are_named_and_others_read(tmp_path, entry, reason):
    results, _, problems = gather([written(tmp_path / "a.json", [RESULT, entry])])
    assert len(results) == 1
    assert "entry 1" in problems[0]
    assert reason in problems[0]


def test_files_of_predictions_are_told_from_results(tmp_path):
    lists = written(tmp_path / "nlp" / "a" / "prediction.json", [{"id": 1, "prediction": "x"}])
    objects = written(tmp_path / "nlp" / "b" / "prediction.json", {"task": "T", "data": [{"id": 1, "prediction": "x"}]})
    results, predictions, problems = gather([lists, objects])
    assert not results
    assert not problems
    assert predictions == [lists, objects]


def test_files_of_a_data_set(tmp_path):
    below = "General-Bench-Openset/3D/generation/b/prediction.json"
    names = ("prediction.json", "nlp/a/prediction.json", "3D/generation/b/prediction.json", below)
    for name in names:
        written(tmp_path / name, [RESULT])
    assert {str(path.relative_to(tmp_path)) for path in files_of(tmp_path, "prediction.json")} == set(names)
    assert files_of(tmp_path / names[0], "anything") == [tmp_path / names[0]]
    with pytest.raises(DataError, match="no such folder"):
        files_of(tmp_path / "absent", "prediction.json")
    with pytest.raises(DataError, match=r"no file result\.json"):
        files_of(tmp_path, "result.json")
    with pytest.raises(UsageError, match="bare name"):
        files_of(tmp_path, str(tmp_path / names[0]))


def test_lines_longer_than_the_heading(tmp_path):
    _, _, problems = gather([written(tmp_path / "a.csv", "task_name,metric\nCausal Reasoning,ACC,70\n")])
    assert "no score" in problems[0]
