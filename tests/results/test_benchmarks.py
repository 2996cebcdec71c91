from types import SimpleNamespace

from lmms_eval.api.outcome import BenchmarkReport
from lmms_eval.api.task import Group
from lmms_eval.results.summary import benchmark_reports


def finished(name, report, details=(), withheld="", reasons=()):
    metrics = tuple(SimpleNamespace(details=detail, withheld_reason=withheld) for detail in details)
    unscored = sum(reason.startswith("unscored") for reason in reasons)
    outcome = SimpleNamespace(reasons=dict.fromkeys(reasons, 1), requested=len(reasons), unscored=unscored)
    task = SimpleNamespace(name=name, report=report)
    return SimpleNamespace(task=task, metrics=metrics, outcome=outcome, early_stop=None, missing={})


def test_tasks_that_name_the_same_function_are_reported_together(tmp_path):
    seen = []

    def report(tasks, stem):
        seen.append((dict(tasks), stem))
        return BenchmarkReport("whole")

    results = [
        finished("a", report, [{"part": 1}, {"other": 2}]),
        finished("plain", None),
        finished("b", report, [{"part": 3}], withheld="one failed"),
    ]
    assert [found.text for found in benchmark_reports(results, tmp_path)] == ["whole"]
    ((tasks, stem),) = seen
    assert stem == tmp_path
    assert {name: (numbers.details, numbers.withheld) for name, numbers in tasks.items()} == {
        "a": ({"part": 1, "other": 2}, ""),
        "b": ({"part": 3}, "one failed"),
    }


def test_a_report_that_raises_is_named_and_the_others_are_made():
    def broken(tasks, stem):
        raise ValueError("no such keyword")

    results = [finished("a", broken), finished("b", lambda tasks, stem: BenchmarkReport("good"))]
    first, second = benchmark_reports(results, None)
    assert "no report over a" in first.text
    assert "no such keyword" in first.text
    assert second.text == "good"


def test_reports_know_the_model():
    seen = {}
    benchmark_reports([finished("a", lambda tasks, stem: seen.update(tasks))], None, model="org/model")
    assert seen["a"].model == "org/model"


def test_a_function_may_have_nothing_to_report():
    assert benchmark_reports([finished("a", lambda tasks, stem: None)], None) == []


def test_tasks_come_with_their_groups_and_with_why_documents_were_not_evaluated():
    seen = {}
    groups = (Group("all", "all", ("left", "c")), Group("left", "left", ("a",)), Group("loop", "loop", ("loop", "c")))
    results = [finished("a", lambda tasks, stem: seen.update(tasks), reasons=["unscored: no weights"])]
    benchmark_reports([*results, finished("c", results[0].task.report, reasons=["failed: x"])], None, groups)
    assert {name: (one.groups, one.unscored) for name, one in seen.items()} == {
        "a": (frozenset({"all", "left"}), "no weights"),
        "c": (frozenset({"all", "loop"}), ""),
    }
