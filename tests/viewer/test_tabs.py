"""The tabs of a run's page: an address each, arrow keys, the back button."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import write_report
from tests.viewer.conftest import Watched, painted, until

RUN = "#/baseline%40letter"
TABS = {
    "Overview": RUN,
    "Samples": f"{RUN}/quiz",
    "Breakdown": f"{RUN}?page=breakdown",
    "Parsing": f"{RUN}?page=audit",
    "Run details": f"{RUN}?page=details",
}
INSIDE = {
    "Overview": "h2:text-is('Results')",
    "Samples": ".list a.row",
    "Breakdown": "h2:text-is('By metadata')",
    "Parsing": "h2:text-is('Answers')",
    "Run details": "h2:text-is('How it was made')",
}


@pytest.fixture(scope="module")
def report(quiz_runs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tabs") / "report"
    write_report([str(run) for run in quiz_runs], out, ReportOptions(media="none"))
    return out


def chosen(page: Any) -> str:
    name: str = page.inner_text("[role=tab][aria-selected=true]")
    return name


def test_each_tab_has_an_address_of_its_own(report: Path, watched: Watched) -> None:
    for name, address in TABS.items():
        page = watched.open(report, address)
        page.wait_for_selector(f"[role=tabpanel] {INSIDE[name]}")
        assert chosen(page) == name
        assert [tab.get_attribute("href") for tab in page.query_selector_all("[role=tab]")] == list(TABS.values())
        panel = page.get_attribute("[role=tab][aria-selected=true]", "aria-controls")
        assert page.get_attribute(f"#{panel}", "role") == "tabpanel"
        assert len(page.query_selector_all("h1")) == 1


def test_arrows_go_round_and_keep_the_focus(report: Path, watched: Watched) -> None:
    page = watched.open(report, RUN)
    page.wait_for_selector(INSIDE["Overview"])
    page.focus("[role=tab][aria-selected=true]")
    names = list(TABS)
    for key, name in [
        *(("ArrowRight", name) for name in [*names[1:], names[0]]),
        ("End", names[-1]),
        ("Home", names[0]),
    ]:
        page.keyboard.press(key)
        page.wait_for_selector(f"[role=tabpanel] {INSIDE[name]}")
        painted(page)
        assert chosen(page) == name
        assert page.evaluate("document.activeElement.textContent") == name
        assert page.evaluate("document.querySelectorAll('[role=tab][tabindex=\"0\"]').length") == 1


def test_the_back_button_goes_to_the_tab_before(report: Path, watched: Watched) -> None:
    page = watched.open(report, RUN)
    for name in ("Breakdown", "Run details"):
        page.click(f"[role=tab]:text-is('{name}')")
        page.wait_for_selector(INSIDE[name])
    for name in ("Breakdown", "Overview"):
        page.go_back()
        page.wait_for_selector(INSIDE[name])
        assert chosen(page) == name


def test_wrong_answers_are_one_click_away(report: Path, watched: Watched) -> None:
    page = watched.open(report, RUN)
    link = "a[aria-label='49 wrong answers of quiz']:visible"
    assert page.inner_text(link) == "49 wrong"
    page.click(link)
    page.wait_for_selector(".list a.row")
    assert page.url.endswith("/quiz?verdict=wrong")
    until(page, "document.querySelector('main [role=status]').innerText === '49 of 69 samples'")
    page = watched.open(report, "#/baseline%40gold")  # full marks: there are none
    page.wait_for_selector(INSIDE["Overview"])
    assert "none wrong" in page.inner_text("[aria-label=Results]")
    assert page.query_selector("a[aria-label*='wrong answers']") is None


def test_the_head_stays_in_sight(report: Path, watched: Watched) -> None:
    page = watched.open(report, f"{RUN}?page=breakdown")
    page.wait_for_selector(".breakdown")
    page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
    until(page, "window.scrollY > 100")
    assert page.query_selector(".run-head").bounding_box()["y"] == 0
    assert "exact_match" in page.inner_text(".headline") and "over 69 questions" in page.inner_text(".headline")


def test_narrow_pages_show_scores_first(report: Path, watched: Watched) -> None:
    watched.page.set_viewport_size({"width": 400, "height": 800})
    for tab in ("overview", "breakdown"):
        page = watched.open(report, f"{RUN}?page={tab}")
        page.wait_for_selector("td .score")
        painted(page)
        hidden = page.evaluate("""[...document.querySelectorAll("td .score b")].filter((one) => {
            const [box, around] = [one.getBoundingClientRect(), one.closest(".scroll").getBoundingClientRect()];
            return box.width > 0 && (box.left < around.left || box.right > around.right);
        }).length""")
        assert hidden == 0, tab
        first = page.evaluate("document.querySelector('td .score').closest('td').cellIndex")
        assert first == 1, tab
