from __future__ import annotations

from typing import Any

from lmms_eval.results.controls import Chance, Controls, Gap, TaskControls
from lmms_eval.results.tables import MAX_NAME, MAX_PARTS, control_lines, document_tables
from lmms_eval.stats import Interval


def gaps(*ps: float | None) -> dict[str, dict[str, Gap]]:
    return {"no-media": {f"m{n},none": Gap(0.5, 0.7, 0.2, Interval(0.1, 0.3, "t"), p, 50) for n, p in enumerate(ps)}}


def test_gaps_of_all_tasks_are_corrected_together() -> None:
    tasks = {name: TaskControls(Chance(None, None), gaps(p, None)) for name, p in (("a", 0.03), ("b", 0.04))}
    assert control_lines(Controls(tasks)) == [
        "Gap_P is of each row alone; corrected over all 2 rows (Holm), 0 gaps differ from 0 at 0.05"
    ]
    tasks["b"] = TaskControls(Chance(None, None), gaps(0.001))
    assert control_lines(Controls(tasks))[-1].endswith("(Holm), 2 gaps differ from 0 at 0.05")
    assert control_lines(Controls({"a": tasks["a"]})) == []


def document(task: str, scores: dict[str, Any], n: dict[str, int] | None = None, **more: Any) -> dict[str, Any]:
    outcome: dict[str, Any] = {"scored": 59, "n": {f"{name},none": count for name, count in (n or {}).items()}}
    outcome |= {"partial": {}, "wrote_files": [f"{name},none" for name, value in scores.items() if value is None]}
    entry = {"alias": task} | {f"{name},none": value for name, value in scores.items()}
    return {"results": {task: entry}, "outcomes": {task: outcome}, **more}


def joined(*documents: dict[str, Any]) -> dict[str, Any]:
    keys = dict.fromkeys(key for one in documents for key in one)
    return {key: {name: value for one in documents for name, value in one.get(key, {}).items()} for key in keys}


def test_counts_are_lines_below_the_scores() -> None:
    shown = document_tables(
        joined(
            document("mega", {"macro_mean": 0.5, "scored": 59, "submission": None}, {"scored": 59, "submission": 59}),
            document("closed", {"submission": None}, {"submission": 1200}),
        )
    )
    table, *lines = shown.split("\n\n")
    assert "macro_mean" in table and "closed" not in table
    assert lines == ["scored documents: mega 59\nanswers for submission: mega 59, closed 1,200"]


def test_counts_of_many_tasks_are_summed_up() -> None:
    many = [document(f"t{n}", {"accuracy": 1.0, "predictions": None}, {"predictions": 1000}) for n in range(5)]
    assert document_tables(joined(*many)).endswith("\n\nstored predictions: 5,000 of 5 tasks")


def test_a_run_that_scores_nothing_keeps_its_rows() -> None:
    shown = document_tables(document("t", {"bypass": 999}, {"bypass": 59}))
    assert "bypass" in shown and "999" in shown


def test_a_withheld_count_keeps_its_row_with_the_reason() -> None:
    withheld = document("t", {"submission": None}, {"submission": 3})
    withheld["outcomes"]["t"] |= {"failed": 7, "wrote_files": [], "partial": {"submission,none": {}}}
    assert "withheld (7 failed)" in document_tables(withheld)


def test_a_score_with_the_name_of_a_count_is_a_score() -> None:
    assert "|submission|" in document_tables(document("t", {"submission": 0.25}, {"submission": 59})).replace(" ", "")


def part(value: float, n: int, stderr: float | None = None) -> dict[str, Any]:
    return {"value": value, "n": n, "stderr": stderr}


def test_parts_of_all_metrics_share_one_table_without_empty_parts() -> None:
    first = {"Art": part(0.5, 2, 0.5), "Math": part(0.0, 0), "All": part(1.0, 4, 0.0)}
    second = {"Art": part(1.0, 2, 0.0), "All": part(0.25, 4, 0.25)}
    parts = {"quiz": {"acc,none": {"subject": first}, "other,strict": {"subject": second}}}
    shown = document_tables(document("quiz", {"acc": 0.5, "other": 0.25}) | {"sub_scores": parts})
    assert "quiz by subject" not in document_tables(document("quiz", {"acc": None}) | {"sub_scores": parts})
    shown = document_tables(
        {"results": {"quiz": {"acc,none": 0.5, "other,strict": 0.25}}, "outcomes": {}, "sub_scores": parts}
    )
    _, title, table = shown.split("\n\n")
    assert title == "quiz by subject"
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert rows[0] == ["Subject", "N", "acc", "Stderr", "other (strict)", "Stderr"]
    assert rows[2:] == [["Art", "2", "0.5", "0.5", "1.00", ""], ["All", "4", "1.0", "", "0.25", "0.25"]]


def test_names_of_parts_are_harmless() -> None:
    hostile = {"\x1b[31mred\u202e|": part(1.0, 1), "long " * 99: part(1.0, 1), "two\nlines": part(1.0, 1)}
    many = {f"part {number}": part(0.5, 1) for number in range(50)}
    found = {"results": {"t": {"acc,none": 1.0}}, "sub_scores": {"t": {"acc,none": {"kind": hostile | many}}}}
    shown = document_tables(found)
    assert "\\u001b[31mred\\u202e\\|" in shown and "two lines" in shown
    assert shown.endswith(f"\nand {53 - MAX_PARTS} more (sub_scores in the results file)")
    assert max(map(len, shown.splitlines())) < MAX_NAME + 30
