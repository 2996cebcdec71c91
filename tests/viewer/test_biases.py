"""The section of a run's page about its judge."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import write_report
from tests.results.runs import document, write_run
from tests.viewer.conftest import Watched

SLOPE = {"slope": 0.0312, "correlation": 0.214, "low": 0.01, "high": 0.0524, "n": 300, "method": "jackknife"}
PART = {
    "metric": "score,none",
    "length": SLOPE,
    "length_given_human": {"slope": None, "correlation": None, "low": None, "high": None, "n": 1, "reason": "n = 1"},
    "position": {
        "orders": [["a", "b"], ["b", "a"]],
        "documents": 120,
        "both_orders": 120,
        "first": {"value": 0.6, "low": 0.5, "high": 0.7, "n": 120, "method": "wilson"},
        "changed": {"value": 0.25, "low": 0.18, "high": 0.33, "n": 120, "method": "wilson"},
    },
}
HUMAN = {"judge": 0.9, "corrected": 0.8, "interval": {"low": 0.6884, "high": 0.8787}, "labels": 60, "documents": 300}


def test_the_judge_has_a_section(tmp_path: Path, watched: Watched) -> None:
    run = write_run(tmp_path / "run", [], document(judge_bias={"<b>task</b>": PART}, human_scores={"task": HUMAN}))
    write_report([str(run)], tmp_path / "report", ReportOptions())
    page = watched.open(tmp_path / "report", f"#/{quote('org/model', safe='')}?page=breakdown")
    page.wait_for_selector("h2:text-is('Judge')")
    rows = page.locator("section:has(> h2:text-is('Judge')) tbody tr").all_inner_texts()
    assert [" ".join(row.split()) for row in rows] == [
        "task mean human score, estimated 0.8000 0.6884 – 0.8787 60 judge: 0.9000; for questions like these",
        "<b>task</b> score, with each doubling of the answer's length 0.0312 0.0100 – 0.0524 300 correlation 0.21; "
        "longer answers may be better ones",
        "<b>task</b> the same at equal human scores – 1 n = 1",
        "<b>task</b> preference changes with the order 25.0 % 18.0 % – 33.0 % 120",
        "<b>task</b> first answer preferred 60.0 % 50.0 % – 70.0 % 120 over both orders; 50 % without preference for a "
        "position",
    ]
