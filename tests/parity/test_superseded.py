from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.tasks.megabench.facts import tasks
from tests.cases import for_each
from tests.parity.adapters import megabench_evaluator
from tests.parity.adapters.megabench_evaluator import RULE, analysis_places, full_places, other_figures, phantom_places
from tests.parity.replay import states, write_json
from tests.parity.superseded import differences, superseded, tree
from tests.parity.vectors import PASSED, deviates
from tests.tasks.megabench.submissions import INFO, entry, query, reference


def scored(name: str, *scores: float, **changes: Any) -> dict[str, Any]:
    queries = [{"correct_answer": {"a": "x"}, "scores": {"field": {"a": s}, "info": {}, "query": s}} for s in scores]
    mean = sum(scores) / len(scores)
    totals = {"task_score": sum(scores), "mean_task_score": mean, "eval_type": "rule"}
    return {"task_name": name, "query_response": queries, **totals, **changes}


def output(*data: dict[str, Any], mean: float = 0.5) -> dict[str, Any]:
    return {"data": list(data), "summary": {"macro_mean_score": mean}}


def test_tasks_are_told_apart_by_name_and_queries_by_position() -> None:
    one = tree(output(scored("a", 0, 1), scored("b", 1)))
    other = tree(output(scored("b", 1), scored("a", 0, 0.5)))
    assert list(differences(one, other)) == [
        ("data", "a", "query_response", 1, "scores", "field", "a"),
        ("data", "a", "query_response", 1, "scores", "query"),
        ("data", "a", "task_score"),
        ("data", "a", "mean_task_score"),
    ]


def test_what_one_side_lacks_is_named_at_its_top() -> None:
    assert list(differences(tree(output(scored("a", 1), scored("b", 1))), tree(output(scored("a", 1))))) == [
        ("data", "b")
    ]
    assert tree([{"name": "a"}, {"name": "a"}]) == {"a": {"name": "a"}, "a#2": {"name": "a"}}


@for_each(
    ("found", "state"),
    [
        (output(scored("a", 1), scored("b", 0), mean=0.5), "passed"),
        (output(scored("a", 0), scored("b", 0), mean=0.0), "deviates"),
        (output(scored("a", 0.5), scored("b", 0), mean=0.25), "deviates"),
        (output(scored("a", 0), scored("b", 1), mean=0.5), "failed"),
        (output(scored("a", 0)), "failed"),
        ({**output(scored("a", 1), scored("b", 0)), "errors": ["c"]}, "failed"),
    ],
)
def test_ours_may_differ_only_where_the_corrected_file_does(found: dict[str, Any], state: str) -> None:
    recorded, right = (tree(output(scored("a", s), scored("b", 0), mean=s / 2)) for s in (1, 0))
    allowed = list(differences(recorded, right))
    assert superseded(tree(found), recorded, allowed, "r", "file").state == state


def test_the_path_beyond_is_named() -> None:
    recorded = tree(output(scored("a", 1)))
    verdict = superseded(tree(output(scored("a", 1), mean=0.6)), recorded, [], "r", "file.json")
    assert "file.json: differs from the record at summary/macro_mean_score" in verdict.detail


def known(monkeypatch: pytest.MonkeyPatch, **more: Any) -> None:
    """A data set of two tasks of two queries each."""
    held = {"a": reference("a"), "b": reference("b"), **more}
    monkeypatch.setattr(megabench_evaluator, "reference", lambda configuration: held)


def submission_case(root: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, dict[str, Any]]:
    """A case whose two tasks are recorded with the first query of ``b`` right, which ours has wrong; and ours."""
    known(monkeypatch)
    folder = root / "megabench_pipeline" / "submissions" / "sub_x"
    submission = [entry(query(1), query(2), name="a"), entry(query(1, "Answer: y"), query(2), name="b")]
    write_json(folder, "case.json", {"subset": "core"})
    write_json(folder, "megabench_core_all_query_responses.json", submission)
    ours = megabench_evaluator.strip(megabench_evaluator.evaluated(submission, "core"))
    write_json(folder, "expected_wanted/scores.json", ours)
    return folder, ours


def changed(content: dict[str, Any], task: int, **values: Any) -> dict[str, Any]:
    other = copy.deepcopy(content)
    other["data"][task] |= values
    return other


def test_the_superseded_file_of_a_submission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, ours = submission_case(tmp_path, monkeypatch)
    recorded = changed(ours, 1, task_score=2.0, mean_task_score=1.0)
    write_json(folder, "expected/scores.json", recorded)
    assert states(tmp_path) == [RULE, "passed"]
    write_json(folder, "expected/scores.json", ours)
    assert states(tmp_path) == ["passed", "passed"]
    write_json(folder, "expected_wanted/scores.json", changed(ours, 0, task_score=1.5))
    assert states(tmp_path) == ["passed", "failed"]
    write_json(folder, "expected/scores.json", changed(recorded, 0, task_score=1.5))
    assert states(tmp_path) == ["failed", "failed"]


def test_a_file_without_a_corrected_one_must_be_met(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, ours = submission_case(tmp_path, monkeypatch)
    write_json(folder, "expected/other.json", changed(ours, 1, task_score=2.0))
    assert states(tmp_path) == ["failed", "passed"]


def test_an_unknown_task_may_be_repeated_without_scores_or_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corrected = {**output(scored("a", 1), {"task_name": "u", "query_response": []}), "errors": ["u"]}
    left_out = {**output(scored("a", 1)), "errors": [{"task_name": "u", "error": "unknown"}]}
    assert megabench_evaluator.compare_files(left_out, corrected) == ""
    assert megabench_evaluator.compare_files({**left_out, "data": corrected["data"]}, corrected) == ""
    with_scores = output(scored("a", 1), scored("u", 0))
    assert megabench_evaluator.compare_files({**with_scores, "errors": left_out["errors"]}, corrected) != ""


def test_the_full_set_has_the_figures_of_the_other_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A phantom field that counts as right in the record, in ``a`` with other figures, in ``b`` with the same."""
    phantom = {**INFO, "field_score_function": {"a": "exact_str_match", "extra": "exact_str_match"}}
    recorded = output(scored("a", 0.5, 1), scored("b", 1, 1), scored("c", 1, 0))
    for task in recorded["data"][:2]:
        task["query_response"][0]["scores"]["field"]["extra"] = 1
    right = output(scored("a", 0, 1), scored("b", 1, 1), scored("c", 1, 0), mean=0.4)
    original = {
        "tasks": [
            {"query_scores": [q["scores"]["query"] for q in task["query_response"]], **task} for task in right["data"]
        ]
    }
    tasks_known = {name: reference(name, phantom) for name in "abc"}
    before = tree(recorded)
    places = other_figures(before, original)
    assert places == [
        ("data", "a", "task_score"),
        ("data", "a", "mean_task_score"),
        ("data", "a", "query_response", 0, "scores", "query"),
    ]
    allowed = full_places(before, places) + phantom_places(before, tasks_known)
    assert superseded(tree(right), before, allowed, "r", "f") == deviates("r")
    assert superseded(before, before, allowed, "r", "f") == PASSED
    for tampered in (
        output(scored("a", 0, 1), scored("b", 1, 1), scored("c", 1, 1), mean=0.4),
        output(scored("a", 0, 1), scored("b", 0, 1), scored("c", 1, 0), mean=0.4),
        output(scored("a", 0, 1, eval_type="llm"), scored("b", 1, 1), scored("c", 1, 0), mean=0.4),
    ):
        assert superseded(tree(tampered), before, allowed, "r", "f").state == "failed"
    assert superseded(tree({**recorded, "summary": {}}), before, full_places(before, []), "r", "f").state == "failed"


def test_an_analysis_of_the_full_set_may_differ_in_the_keywords_of_such_a_task() -> None:
    facts = next(iter(tasks().values()))
    places = analysis_places({"keyword_stats": {}}, {facts.name: ["mean_task_score"]})
    assert ("keyword_stats", "app", facts.labels.application) in places
    assert ("model_summary",) in places
    assert len(places) == len(facts.labels.skills) + 5
    assert analysis_places({"keyword_stats": {}}, {}) == []
    assert analysis_places({}, {"a": ["task_score", "mean_task_score", "query_response"]}) == [("a", "score")]
