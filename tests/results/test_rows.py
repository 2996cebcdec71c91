"""The table of typed results, held to the table that the family's dictionary of the same run gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from lmms_eval import stats
from lmms_eval.api.outcome import Withheld
from lmms_eval.api.task import Group, GroupMetric, PipelineScore
from lmms_eval.engine.aggregate import TaskResult
from lmms_eval.engine.evaluate import RunScores
from lmms_eval.results.baseline import PairedScores
from lmms_eval.results.document import results_document
from lmms_eval.results.tables import make_table, tables
from tests.cases import for_each
from tests.engine.fakes import FakeTask, mean
from tests.engine.journaled import aggregated, failed, metric, scored
from tests.results.finished import FACTS, run_result, selection, task_result

PAIRED = PairedScores("earlier", "percent", 40.0, 10.0, 5.0, 15.0, 0.01, 2)


def of_document(document: Mapping[str, Any]) -> str:
    parts = [make_table(document)]
    if document.get("groups"):
        parts.append(make_table(document, "groups"))
    return "\n\n".join(part.rstrip("\n") for part in parts)


def check(run: RunScores, groups: Sequence[Group] = (), paired: Mapping[str, Any] | None = None) -> str:
    chosen = selection(*run.tasks, groups=groups, direct=[] if groups else None)
    document = results_document(run, chosen, FACTS, paired or {})
    text = tables(document, run)
    assert text == of_document(document)
    return text


def test_tables_of_tasks_groups_and_speed(tmp_path: Path) -> None:
    tasks = [task_result(tmp_path, "a"), task_result(tmp_path, "b", [1.0, 1.0])]
    groups = [
        Group("all", "All", ("a", "inner"), (GroupMetric("acc", "mean"),)),
        Group("inner", "Inner", ("b",)),
    ]
    text = check(run_result(*tasks, groups=groups, output_tokens=10, answered=1, seconds=1.0), groups)
    assert text.index("Tasks") < text.index("Throughput Summary") < text.index("Groups")
    assert text.count("All") == 2 and "| - a" in text and "0.75" in text
    (inner,) = (line for line in text.splitlines() if "- Inner" in line)
    cells = [cell.strip() for cell in inner.strip("|").split("|")]
    assert cells[:8] == ["- Inner", "", "", "", "", "", "±", "N/A"]


@for_each("values", [[], [1.0], [1.0, 0.0, 1.0]])
@for_each("lost", [0, 2])
def test_absent_and_withheld_numbers(tmp_path: Path, values: list[float], lost: int) -> None:
    if not values and not lost:
        return
    text = check(run_result(task_result(tmp_path, "a", values, lost)))
    assert ("withheld (2 failed)" in text) is (lost > 0)


def split_task(folder: Path, lost: int = 0) -> TaskResult:
    """Three documents with ``perception``, one with ``cognition``, none with ``planning``."""
    task = FakeTask(4 + lost)
    task.metrics = tuple(metric(name, mean, "mean") for name in ("perception", "cognition", "planning"))
    names = ("perception", "perception", "perception", "cognition")
    records = [
        scored(task, number, PipelineScore("none", "said", {name: float(number % 2)}))
        for number, name in enumerate(names)
    ]
    return aggregated(folder, task, [*records, *(failed(task, 4 + n, "timeout") for n in range(lost))])


def cells(text: str, heading: str) -> dict[str, str]:
    head, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines())
    return {line[head.index("Metric")]: line[head.index(heading)] for line in lines}


def test_each_metric_counts_the_documents_that_emitted_it(tmp_path: Path) -> None:
    text = check(run_result(split_task(tmp_path)))
    assert cells(text, "N") == {"perception": "3", "cognition": "1", "planning": "0"}
    assert cells(text, "Value")["planning"] == "N/A (no document has it)"
    assert cells(text, "CI95")["cognition"] == "n = 1" and cells(text, "CI95")["perception"].startswith("[0.")


def test_a_group_counts_the_documents_of_its_parts_that_emitted_the_metric(tmp_path: Path) -> None:
    tasks = [split_task(tmp_path / "a"), task_result(tmp_path, "b")]
    group = Group("all", "All", ("fake",), (GroupMetric("perception", "mean"),))
    (found,) = run_result(*tasks, groups=[group]).groups[0].metrics
    assert found.n == 3


def test_an_absent_metric_of_documents_that_failed(tmp_path: Path) -> None:
    text = check(run_result(split_task(tmp_path, lost=1)))
    assert cells(text, "Value") == {
        "perception": "withheld (1 failed)", "cognition": "withheld (1 failed)", "planning": "N/A (no document has it)",
    }  # fmt: skip


def test_numbers_of_the_tasks_own(tmp_path: Path) -> None:
    for number, value in enumerate([{"a": 1}, "text", (1, 2), 3, float("nan"), None, Withheld(0.5, "too few")]):
        check(run_result(task_result(tmp_path, f"t{number}", aggregation=lambda _values, value=value: value)))


def test_stability_errors_comparison_and_written_files(tmp_path: Path) -> None:
    task = task_result(tmp_path, "a")
    (metric,) = task.metrics
    more = [
        structs.replace(
            metric, metric="acc_norm", stability=stats.Stability(0.5, 0.25, 0.125, 1.0), stderr_clustered=0.25
        ),
        structs.replace(metric, metric="file", value=None, details={"submission_files": ["f.json"]}),
        structs.replace(metric, metric="my_stderr", filter="strict"),
    ]
    text = check(run_result(structs.replace(task, metrics=(metric, *more))), paired={"a": {"acc,none": PAIRED}})
    assert "f.json" not in text and "|file" not in text and "my_stderr" in text
    heading = text.splitlines()[0]
    assert [name for name in ("Stderr_Clustered", "EA", "CR", "Baseline", "Diff") if name in heading] == [
        "Stderr_Clustered", "EA", "CR", "Baseline", "Diff",
    ]  # fmt: skip
    assert "+10.0%" in text and "[+5.0%, +15.0%]" in text and "0.0100*" in text
    only = structs.replace(task, metrics=(more[1],))
    assert "|file" in check(run_result(only)).replace(" ", "")


def test_names_that_cannot_be_told_apart_in_text_keys(tmp_path: Path) -> None:
    """In text keys a metric ``acc_stderr`` is taken for the error of ``acc``, and a filter ends at its last comma."""
    task = task_result(tmp_path, "a")
    (metric,) = task.metrics
    more = structs.replace(metric, metric="acc_stderr"), structs.replace(metric, filter="first, last")
    run = run_result(structs.replace(task, metrics=(metric, *more)))
    text = tables(results_document(run, selection(*run.tasks), FACTS, {}), run)
    assert "|acc_stderr|" in text and "|first, last|" in text
