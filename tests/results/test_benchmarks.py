from types import SimpleNamespace

from lmms_eval.api.outcome import BenchmarkReport
from lmms_eval.results.benchmarks import benchmark_reports


def finished(name, report, details=(), withheld=""):
    metrics = tuple(SimpleNamespace(details=detail, withheld_reason=withheld) for detail in details)
    return SimpleNamespace(task=SimpleNamespace(name=name, report=report), metrics=metrics)


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


def test_a_function_may_have_nothing_to_report():
    assert benchmark_reports([finished("a", lambda tasks, stem: None)], None) == []
