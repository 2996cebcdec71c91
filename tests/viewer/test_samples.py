"""Verdicts on samples: in the index, in the list and its filters, and on the page of a sample."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval.compare.runs import MetricColumn
from lmms_eval.utils.numbers import ScoreRange
from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import write_report
from lmms_eval.viewer.samples import VERDICTS, ends_of, verdict_of
from tests.cases import for_each
from tests.results.runs import document, write_run
from tests.viewer.conftest import Watched, painted, quiz_rows, run_task, until, write_task
from tests.viewer.test_report import content

SCORES = [0.0, 0.5, 1.0]


def column(low: float | None, high: float, higher: bool | None = True) -> MetricColumn:
    within = None if low is None else ScoreRange(low, high)
    return MetricColumn("acc", "none", np.array(SCORES), score_range=within, higher_is_better=higher)


@for_each(
    "found, expected",
    [
        (column(0, 1), (0, 1)),
        (column(0, 100), (0, 100)),
        (column(0, 1, higher=None), (0, 1)),
        (column(0, 1, higher=False), (1, 0)),  # a rate of errors
        (column(0, math.inf, higher=False), (None, 0)),  # without a bound, no score is the worst
        (column(0, math.inf), None),  # the best score is not known
        (column(-math.inf, 1), (None, 1)),
        (column(1, 1), None),
    ],
)
def test_ends_come_from_the_range_and_the_direction(found: MetricColumn, expected: object) -> None:
    assert ends_of(found, SCORES) == expected


def test_without_a_range_only_shares_have_ends() -> None:
    unknown = column(None, 0)
    assert ends_of(unknown, [0, 0.25, None]) == (0, 1)
    assert ends_of(unknown, [0, 1.5]) is None
    assert ends_of(unknown, [-0.5, 0.5]) is None
    assert ends_of(unknown, [None]) is None, "nothing is known of a metric without scores"


@for_each(
    "score, ends, verdict",
    [
        (1, (0, 1), "correct"),
        (1 - 1e-12, (0, 1), "correct"),
        (0, (0, 1), "wrong"),
        (0.999, (0, 1), "partly"),
        (0, (1, 0), "correct"),
        (1, (1, 0), "wrong"),
        (3, (None, 0), "partly"),
        (100, (0, 100), "correct"),
        (1, (0, 100), "partly"),
    ],
)
def test_verdicts(score: float, ends: tuple[float | None, float], verdict: str) -> None:
    assert verdict_of(score, *ends) == verdict
    assert verdict in VERDICTS


def test_the_index_counts_verdicts(tmp_path: Path) -> None:
    rows = [{"doc_id": number, "target": "a", "filtered_resps": ["a"]} for number in range(6)]
    scored = [row | {"acc": score} for row, score in zip(rows, (1.0, 0.0, 0.0, 0.5), strict=False)]
    lost = [rows[4] | {"status": "unscored", "reason": "no reference"}, rows[5] | {"status": "failed", "error": "x"}]
    write_run(tmp_path / "run", [*scored, *lost], document())
    write_report([str(tmp_path / "run")], tmp_path / "report", ReportOptions())
    (task,) = content(tmp_path / "report", "runs")["runs"][0]["tasks"]
    columns = {one["key"]: one for one in content(tmp_path / "report", f"index-{task['key']}")["columns"]}
    assert columns["s.acc,none"]["verdicts"] == {"correct": 1, "wrong": 2, "partly": 1}
    assert columns["s.acc,none"]["ends"] == [0, 1]
    assert columns["status"]["verdicts"] == {"unscored": 1, "failed": 1}


LETTER = "#/baseline"


@pytest.fixture(scope="module")
def letter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a run that has every third of the first twelve documents right."""
    folder = tmp_path_factory.mktemp("letter")
    task = write_task(folder / "task", quiz_rows(folder / "task")[:12])
    run = run_task(task, folder / "run", "strategy=constant,text=A")
    write_report([str(run)], folder / "report", ReportOptions())
    return folder / "report"


def listed(page: Any) -> list[str]:
    return [row.inner_text().split()[1] for row in page.query_selector_all(".list a.row")]


def shown(page: Any, doc: int) -> None:
    until(page, "doc => document.querySelector('h1')?.innerText.startsWith(doc)", f"{doc}")
    painted(page)


def test_wrong_answers_are_one_click_away(letter: Path, watched: Watched) -> None:
    page = watched.open(letter, f"{LETTER}/quiz")
    first = page.query_selector(".filters button >> nth=1")
    assert first.inner_text().split() == ["Wrong", "only", "8"]
    first.click()
    until(page, "document.querySelector('[role=status]').innerText === '8 of 12 samples'")
    assert page.url.endswith("?verdict=wrong")
    assert set(listed(page)) == {"wrong"}
    page.click("button:has-text('Correct')")
    until(page, "document.querySelector('[role=status]').innerText === '4 of 12 samples'")
    assert set(listed(page)) == {"correct"}
    page.click("button:has-text('All')")
    page.click(".row.head button:has-text('Verdict')")
    until(page, "document.querySelector('.list a.row').innerText.includes('wrong')")
    assert listed(page) == 8 * ["wrong"] + 4 * ["correct"]


def test_raw_names_of_columns_have_words_or_are_below_more(letter: Path, watched: Watched) -> None:
    page = watched.open(letter, f"{LETTER}/quiz")
    page.click("button:has-text('Filters')")
    page.wait_for_selector(".fields label:has-text('Kind')")
    assert page.query_selector(".fields > label:has-text('Level')").get_attribute("title") == "level"
    assert not page.is_visible("label:has-text('Status')")
    page.click("summary:text-is('More')")
    page.wait_for_selector("label:has-text('Status'):visible")
    assert "audit." not in page.inner_text(".filters")
    page = watched.open(letter, f"{LETTER}/quiz?status=scored")
    page.wait_for_selector("label:has-text('Status'):visible")


@pytest.mark.parametrize("width", [1280, 400])
def test_the_score_follows_the_name(width: int, letter: Path, watched: Watched) -> None:
    watched.page.set_viewport_size({"width": width, "height": 800})
    page = watched.open(letter, f"{LETTER}/quiz")
    page.wait_for_selector(".list a.row")
    heads = [head.inner_text() for head in page.query_selector_all(".row.head button")]
    assert heads[:3] == (["Id", "Verdict", "exact_match"] if width > 640 else ["Id", "exact_match", "Answer"])
    cell = page.query_selector(".list a.row >> nth=1").query_selector("span.number")
    assert cell.inner_text().split()[-1] == "0"
    assert cell.query_selector(".dot").is_visible() == (width == 400)
    assert page.evaluate("document.querySelector('.list').scrollWidth <= document.querySelector('.list').clientWidth")


def test_a_sample_begins_with_its_verdict(letter: Path, watched: Watched) -> None:
    page = watched.open(letter, f"{LETTER}/quiz/1")
    until(page, "document.querySelector('.pill')?.innerText === 'wrong'")
    assert page.inner_text(".outcome .headline") == "exact_match 0"
    assert page.inner_text("h1").split() == ["1", "What", "is", "1", "and", "one?"]
    page.set_viewport_size({"width": 400, "height": 500})
    page.evaluate("window.scrollTo(0, 400)")
    painted(page)
    assert page.query_selector(".pill").bounding_box()["y"] > 0, "the header stays in sight"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_keys_and_buttons_lead_from_wrong_to_wrong(letter: Path, watched: Watched) -> None:
    page = watched.open(letter, f"{LETTER}/quiz/0")
    shown(page, 0)
    for key, doc in (("J", 1), ("J", 2), ("J", 4), ("K", 2)):
        page.keyboard.press(f"Shift+{key}")
        shown(page, doc)
    page.click("button:has-text('Next wrong')")
    shown(page, 4)
    page = watched.open(letter, f"{LETTER}/quiz/11")
    shown(page, 11)
    page.click("button:has-text('Next wrong')")
    page.wait_for_selector("text=No wrong answer after this one")
    assert page.is_disabled("button:has-text('Next wrong')")
    page.click("button:has-text('Previous wrong')")
    shown(page, 10)
    page.wait_for_selector("button:has-text('Next wrong'):enabled")


MARKED = (
    ("It is 0.9 m", "It is 0.3 m", ["0.3"], ["0.9"]),
    ("It is -0.9 m", "It is 0.9 m", ["0.9"], ["-0.9"]),
    ("about 1,250 men", "about 1,350 men", ["1,350"], ["1,250"]),
    ("about 0,9 m", "about 0,3 m", ["0,3"], ["0,9"]),
    ("the cat 12%", "the cats 12%", ["cats"], ["cat"]),
    ("[1, 2]", "[1, 3]", ["3"], ["2"]),
)
"""Answers and references, with the words of each that the other lacks."""


def test_words_and_numbers_are_marked_whole(tmp_path: Path, watched: Watched) -> None:
    line = {"acc": 0.0, "status": "scored"}
    rows = [
        {**line, "doc_id": number, "filtered_resps": [answer], "target": reference}
        for number, (answer, reference, _, _) in enumerate(MARKED)
    ]
    write_run(tmp_path / "run", rows, document())
    write_report([str(tmp_path / "run")], tmp_path / "report", ReportOptions())
    for number, (_, _, *expected) in enumerate(MARKED):
        page = watched.open(tmp_path / "report", f"#/org%2Fmodel/quiz/{number}")
        page.wait_for_selector(".block ins")
        texts = "all => all.map(one => one.textContent)"
        assert [page.eval_on_selector_all(f".block {kind}", texts) for kind in ("del", "ins")] == expected
