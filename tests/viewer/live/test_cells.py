"""Rows of the terminal's screen, made of entries as the view tells them."""

from __future__ import annotations

from typing import Any

from lmms_eval.viewer.live.screen import bar, duration, number_cells, one_line, remarks, run_cells, warning_lines
from tests.cases import for_each


def task(name: str, requested: int, scored: int, failed: int = 0) -> dict[str, Any]:
    counts = {"requested": requested, "scored": scored, "unscored": 0, "failed": failed}
    return {"name": name, "outcomes": counts}


def row(name: str, **more: Any) -> dict[str, Any]:
    return {"task": name, "metric": "acc", "filter": "none", "value": 0.5, "low": None, "high": None, "n": 4, **more}


def entry(**more: Any) -> dict[str, Any]:
    return {"name": "m", "state": "complete", "tasks": [task("t", 9, 4, 2)], "rows": [row("t")], "warnings": [], **more}


def live(**more: Any) -> dict[str, Any]:
    known = {
        "is_going": True, "requested": 1200, "done": 6, "failed": 2, "rate": None, "rate_overall": 2.25,
        "seconds_left": 531.0, "in_flight": 8, "score": {"value": 0.75, "low": 0.5, "high": 0.9}, "tokens_in": 1000,
        "tokens_out": 20, "token_rate": 3.0, "processes": [{"memory": 2e9}], "reasons": [["timeout", 2]], "tasks": [],
    }  # fmt: skip
    return known | more


def test_a_run_that_goes_on_tells_its_pace() -> None:
    told = run_cells(entry(state="running", live=live()))
    assert told == ("m", "running", "6/1,200", "2.2", "8 min 51 s", "0.7500 [0.5000, 0.9000]", "2", "8", "░" * 12)


def test_a_run_that_is_over_has_no_pace() -> None:
    assert run_cells(entry()) == ("m", "complete", "6/9", "", "", "0.5000", "2", "", "████████░░░░")
    assert run_cells(entry(state="interrupted", live=live(is_going=False)))[3:5] == ("", "")


def test_of_several_numbers_none_is_the_score() -> None:
    assert run_cells(entry(rows=[row("t"), row("t", metric="f1")]))[5] == ""


def test_each_number_has_a_row_and_tasks_without_one_too() -> None:
    planned = [{"name": "t", "requested": 9}, {"name": "later", "requested": 1000}]
    rows = [row("t", low=0.2, high=0.8), row("t", metric="bleu", value=None, withheld="aggregated at the end", n=None)]
    assert number_cells(entry(rows=rows, live=live(tasks=planned))) == [
        ("t", "acc", "none", "0.5000", "[0.2000, 0.8000]", "4", "6/9", "2", "████████░░░░"),
        ("t", "bleu", "none", "aggregated at the end", "", "", "6/9", "2", "████████░░░░"),
        ("later", "", "", "", "", "", "0/1,000", "0", "░" * 12),
    ]


def test_remarks_are_warnings_reasons_and_what_the_run_takes() -> None:
    warnings = [{"text": f"w{number}"} for number in range(9)]
    found = remarks(entry(warnings=warnings, live=live()))
    assert found[:5] == ["! w0", "! w1", "! w2", "! w3", "! and 5 more warnings"]
    assert found[5:] == [
        "2 documents: timeout", "tokens: 1,000 in, 20 out, 3 a second", "processes: 1, memory 2.0 GB",
    ]  # fmt: skip


def test_a_cause_of_many_tasks_is_one_line() -> None:
    shared = [{"text": "no judge", "task": name} for name in "abc"]
    found = warning_lines(entry(warnings=[*shared, {"text": "1 of 9 samples failed", "task": "\x1b[2Jd"}]))
    assert found == ["! no judge (3 tasks)", "! \\u001b[2Jd: 1 of 9 samples failed"]


def test_counts_are_apart_from_scores() -> None:
    rows = [row("t"), row("t", metric="scored", value=59.0, n=59), row("u", metric="submission", value=None, n=3)]
    found = entry(rows=rows)
    assert [cells[1] for cells in number_cells(found)] == ["acc"]
    assert run_cells(found)[5] == "0.5000"
    assert remarks(found) == ["scored documents: 59", "answers for submission: 3"]


@for_each(
    ("done", "whole", "drawn"),
    [(0, 0, ""), (1, -1, ""), (0, 9, "░" * 12), (9, 9, ""), (99, 9, ""), (8.9, 9, "███████████░")],
)
def test_bars(done: float, whole: float, drawn: str) -> None:
    assert bar(done, whole) == drawn


@for_each(
    ("seconds", "text"), [(None, ""), (0.4, "0 s"), (59.6, "1 min 00 s"), (3600, "1 h 00 min"), (9e4, "25 h 00 min")]
)
def test_times(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_texts_obey_nothing() -> None:
    assert one_line("a\x1b[31m\nb\tc") == "a\\u001b[31m b c"
    assert len(one_line("x" * 999)) == 160
