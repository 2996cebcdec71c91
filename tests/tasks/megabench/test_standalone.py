import pytest

from lmms_eval.api.judging import Verdict
from lmms_eval.tasks.megabench.scoring.pool import ScorePool
from lmms_eval.tasks.megabench.standalone import BLOCK, JudgePanel, can_reuse, evaluate
from tests.cases import for_each
from tests.tasks.megabench.submissions import INFO, JUDGED, entry, query, reference


class Watcher:
    def __init__(self):
        self.tasks, self.blocks = [], []

    def task(self, score, is_reused):
        self.tasks.append((score.name, "reused" if is_reused else "scored"))

    def block(self, so_far):
        self.blocks.append(so_far.as_dict()["summary"]["num_tasks"])


def run(entries, tasks, previous=None, panel=None, workers=1):
    watcher = Watcher()
    pool = ScorePool(workers)
    try:
        found = evaluate(entries, tasks, previous or {}, pool, panel, watcher)
    finally:
        pool.close()
    return found.as_dict(), watcher


def judge(replies):
    """A panel whose judge gives these replies in turn; what it was asked goes to ``asked``."""
    asked = []

    def ask(questions):
        asked.extend(question.build_messages() for question in questions)
        said = [replies[len(asked) - len(questions) + number] for number in range(len(questions))]
        return [
            Verdict(question.name, text, text is not None and question.accepts(text), "judge",
                    replies=(text,) if text is not None else (), error=None if text is not None else "timeout: slow")
            for question, text in zip(questions, said, strict=True)
        ]  # fmt: skip

    return JudgePanel(ask, lambda name: pytest.fail(f"{name} was opened")), asked


@for_each("workers", [1, 2])
def test_scores_totals_and_summary(workers):
    entries = [entry(query(1), query(2, "Answer: y")), entry(query(1), name="u")]
    content, watcher = run(entries, {"t": reference("t"), "u": reference("u")}, workers=workers)
    first = content["data"][0]
    assert list(first)[-3:] == ["task_score", "mean_task_score", "eval_type"]
    assert [item["scores"] for item in first["query_response"]] == [
        {"field": {"answer": 1}, "info": {}, "query": 1.0},
        {"field": {"answer": 0}, "info": {}, "query": 0.0},
    ]
    assert (first["task_score"], first["mean_task_score"], first["eval_type"]) == (1.0, 0.5, "rule")
    assert content["summary"] == {
        "macro_mean_score": 0.75,
        "micro_mean_score": pytest.approx(2 / 3),
        "num_tasks": 2,
        "num_queries": 3,
    }
    assert watcher.tasks == [("t", "scored"), ("u", "scored")]


def test_tasks_with_the_same_library_go_to_one_worker_first(monkeypatch):
    groups = []
    submit = ScorePool.submit
    monkeypatch.setattr(
        ScorePool, "submit", lambda pool, *jobs: groups.append([job.task_name for job in jobs]) or submit(pool, *jobs)
    )
    latex = {**INFO, "field_score_function": {"answer": "latex_expr_equality"}}
    number = {**INFO, "field_score_function": {"answer": "boxed_single_numerical_match"}}
    infos = {"a": INFO, "b": latex, "c": INFO, "d": number}
    entries = [entry(query(1), name=name) for name in infos]
    content, _ = run(entries, {name: reference(name, info) for name, info in infos.items()})
    assert groups == [["b", "d"], ["a"], ["c"]]
    assert [item["mean_task_score"] for item in content["data"]] == [1.0] * 4


def test_a_task_without_metrics_counts_with_nothing():
    bare = {key: value for key, value in INFO.items() if key != "field_score_function"}
    tasks = {"t": reference("t"), "u": reference("u", bare)}
    content, _ = run([entry(query(1)), entry(query(1), query(2), name="u")], tasks)
    assert [item["scores"] for item in content["data"][1]["query_response"]] == [
        {"field": {}, "info": {}, "query": -1},
        {"field": {}, "info": {}, "query": -1},
    ]
    assert (content["data"][1]["mean_task_score"], content["data"][1]["eval_type"]) == (0.0, "rule")
    assert (content["summary"]["macro_mean_score"], content["summary"]["num_tasks"]) == (0.5, 2)


def test_the_submission_is_left_as_it_was():
    entries = [entry(query(1))]
    run(entries, {"t": reference()})
    assert entries == [entry(query(1))]


def test_unchanged_tasks_keep_their_scores_even_odd_ones():
    content, _ = run([entry(query(1), query(2))], {"t": reference()})
    old = content["data"][0]
    old["mean_task_score"] = 0.123
    del old["eval_type"]
    again, watcher = run([entry(query(1), query(2))], {"t": reference()}, {"t": old})
    assert watcher.tasks == [("t", "reused")]
    assert again["data"][0]["mean_task_score"] == 0.123
    assert again["data"][0]["eval_type"] == "rule"
    assert again["summary"]["macro_mean_score"] == 0.123


@for_each(
    "changed",
    [
        lambda old: old["query_response"][0].update(response="Answer: other"),
        lambda old: old["query_response"][0].update(correct_answer={"answer": "z"}),
        lambda old: old["query_response"].pop(),
        lambda old: old["query_response"][0].pop("scores"),
        lambda old: old["query_response"][0]["scores"].update(query=None),
        lambda old: old["query_response"][0].update(scores={"field": {}, "info": {}, "query": -1}),
        lambda old: old.pop("task_score"),
        lambda old: old.pop("mean_task_score"),
        lambda old: old.update(query_response="damaged"),
    ],
)
def test_anything_else_is_scored_again(changed):
    content, _ = run([entry(query(1), query(2))], {"t": reference()})
    old = content["data"][0]
    assert can_reuse(entry(query(1), query(2)), old)
    changed(old)
    assert not can_reuse(entry(query(1), query(2)), old)


def test_problems_are_listed_and_the_rest_is_scored():
    broken = {**INFO, "field_score_function": {"answer": "no_such_metric"}}
    entries = [entry(query(1), name="made_up"), entry(query(1), name="bad"), entry(query(1)), entry(name="empty")]
    tasks = {"t": reference(), "bad": reference("bad", broken), "empty": reference("empty")}
    content, _ = run(entries, tasks)
    assert [item["task_name"] for item in content["errors"]] == ["made_up", "bad"]
    assert content["summary"]["num_tasks"] == 1
    assert content["data"][0] == entries[0]
    assert content["data"][3] == entries[3]


def test_without_a_judge_judged_tasks_are_not_evaluated():
    content, _ = run([entry(query(1)), entry(query(1), name="u")], {"t": reference("t", JUDGED), "u": reference("u")})
    judged = content["data"][0]
    assert judged["query_response"][0]["scores"]["query"] is None
    assert "not evaluated: " in judged["query_response"][0]["scores"]["info"]["answer"]
    assert "mean_task_score" not in judged
    assert content["summary"]["macro_mean_score"] is None
    assert content["summary"]["partial"]["macro_mean_score"] == 1.0
    assert content["summary"]["not_evaluated"] == ["t"]


def test_a_judges_verdicts_reach_their_queries():
    panel, asked = judge(["**Score**: 4", "nothing", "**Score**: 10"])
    entries = [entry(query(1), query(2)), entry(query(1), name="u"), entry(query(1), name="v")]
    tasks = {"t": reference("t", JUDGED), "u": reference("u"), "v": reference("v", JUDGED)}
    content, _ = run(entries, tasks, panel=panel)
    assert len(asked) == 3
    scores = [item["scores"]["query"] for task in content["data"] for item in task["query_response"]]
    assert scores == [0.4, 0, 1.0, 1.0]
    first, second = content["data"][0]["query_response"]
    assert first["judge"]["answer"]["model"] == "judge"
    assert second["judge"]["answer"]["accepted"] is False
    assert content["data"][0]["eval_type"] == "llm"


def test_a_judge_that_gives_no_reply_leaves_the_task_without_a_score():
    panel, _ = judge([None])
    content, _ = run([entry(query(1))], {"t": reference("t", JUDGED)}, panel=panel)
    note = content["data"][0]["query_response"][0]["scores"]["info"]["answer"]
    assert "timeout: slow" in note
    assert content["summary"]["macro_mean_score"] is None


def test_verdicts_that_are_kept_are_not_asked_for_again():
    panel, asked = judge(["**Score**: 4", "**Score**: 9"])
    content, _ = run([entry(query(1))], {"t": reference("t", JUDGED)}, panel=panel)
    again, _ = run([entry(query(1))], {"t": reference("t", JUDGED)}, {"t": content["data"][0]}, panel)
    assert len(asked) == 1
    assert again["data"] == content["data"]


def test_the_state_is_offered_after_every_block():
    names = [f"t{number}" for number in range(2 * BLOCK + 1)]
    _, watcher = run([entry(query(1), name=name) for name in names], {name: reference(name) for name in names})
    assert watcher.blocks == [BLOCK, 2 * BLOCK]
