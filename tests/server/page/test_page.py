"""The page in a browser: choose, start, watch, stop, reload, compare."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.server.page.conftest import Page, Tabs

AXE = Path(__file__).parents[3] / "lmms_eval/viewer/web/node_modules/axe-core/axe.min.js"


def choose(tab: Any, model: str, task: str) -> None:
    """Choose model and task in a page that has just been opened."""
    tab.click(f'.choice-row:has(b bdi:text-is("{model}"))')
    tab.fill('input[aria-label="Search tasks"]', task)
    tab.check(f'.task-row:has(b bdi:text-is("{task}")) input')
    tab.wait_for_selector(f".summary pre:has-text('--tasks {task}')")


def begin(tab: Any) -> str:
    """Press the button and return the name of the job."""
    tab.click("text=Start evaluation")
    tab.wait_for_selector(".job-line")
    return str(tab.url.rpartition("/")[2])


def until(holds: Callable[[], bool], seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.2)


def state_of(page: Page, job: str) -> str:
    return next(str(one["state"]) for one in page.jobs() if one["job_id"] == job)


def test_choose_start_watch_reload_and_stop(page: Page, tabs: Tabs) -> None:
    before = len(page.jobs())
    tab = tabs.open(page.address)
    assert page.token not in tab.url
    choose(tab, "baseline", "slow_quiz")
    tab.reload()  # the draft stays, and nothing is started
    tab.wait_for_selector(".summary pre:has-text('--tasks slow_quiz')")
    assert len(page.jobs()) == before
    job = begin(tab)
    tab.wait_for_selector(".running tr:has-text('slow_quiz')", timeout=60_000)
    until(lambda: int(tab.get_attribute(".running progress", "value") or 0) > 2)
    done = int(tab.get_attribute(".running progress", "value"))
    tab.reload()
    tab.wait_for_selector(".running tr:has-text('slow_quiz')")
    until(lambda: int(tab.get_attribute(".running progress", "value") or 0) >= done)
    other = tabs.open(f"{page.root}#/jobs")
    other.wait_for_selector(".jobs .state-running")
    other.reload()
    other.wait_for_selector(".jobs .state-running")
    assert len(page.jobs()) == before + 1
    view = tabs.open(f"{page.root}view/{job}/")
    view.wait_for_selector("text=slow_quiz")
    tab.click("text=Stop")
    tab.click("text=Stop it")
    tab.wait_for_selector(".state-cancelled", timeout=60_000)
    other.wait_for_selector("h2:has-text('Past evaluations') ~ .jobs .state-cancelled")
    assert len(page.jobs()) == before + 1


def test_closing_the_tab_ends_nothing(page: Page, tabs: Tabs) -> None:
    tab = tabs.open(page.address)
    choose(tab, "baseline", "quiz")
    job = begin(tab)
    tab.close()
    until(lambda: state_of(page, job) == "completed")


def test_two_finished_runs_are_compared(page: Page, tabs: Tabs) -> None:
    tab = tabs.open(page.address)
    choose(tab, "baseline", "quiz")
    begin(tab)
    tab.wait_for_selector(".state-completed", timeout=60_000)
    assert tab.inner_text("tbody td").split() == ["quiz", "exact_match"]
    assert float(tab.inner_text("tbody td.number b")) == 1
    assert tab.query_selector("svg.plot")
    assert tab.query_selector("pre.log") is None
    tab.click("role=tab[name=Log]")
    tab.wait_for_selector("pre.log:has-text('exact_match')")
    tab.click("text=Change and run again")
    tab.fill("#argument-strategy", "constant")
    tab.wait_for_selector(".summary pre:has-text('strategy=constant')")
    begin(tab)
    tab.wait_for_selector(".state-completed", timeout=60_000)
    tab.click("text=Open the report")
    tab.wait_for_url(re.compile("/pages/"), timeout=60_000)
    tab.wait_for_selector("h1:has-text('One run')")
    tab.goto(f"{page.root}#/jobs")
    tab.wait_for_selector(".jobs input")
    for box in tab.query_selector_all(".jobs input")[:2]:
        box.check()
    tab.click("text=Compare 2 runs")
    tab.wait_for_url(re.compile("/pages/.*compare"), timeout=60_000)
    tab.wait_for_selector("text=worse >> nth=0")


FOCUSED = "(at => at.getAttribute('aria-label') || at.textContent.trim() || at.id)(document.activeElement)"


def test_the_list_shows_scores_progress_and_reasons(page: Page, tabs: Tabs) -> None:
    with page.client() as client:
        failing = {"model": "baseline", "model_args": {"strategy": "<b>no such"}, "tasks": ["quiz"]}
        gold = {"model": "baseline", "model_args": {"strategy": "gold"}, "tasks": ["quiz"]}
        failed, done = (client.post("eval/start", json=one).json()["job_id"] for one in (failing, gold))
    until(lambda: {state_of(page, failed), state_of(page, done)} == {"failed", "completed"})
    tab = tabs.open(page.address)
    tab.goto(f"{page.root}#/jobs")
    tab.wait_for_selector(f".jobs li:has(a[href='#/job/{done}']) .job-headline")
    row = f".jobs li:has(a[href='#/job/{done}'])"
    assert tab.inner_text(f"{row} .job-headline b") == "1.0000"
    assert re.fullmatch(r"0\.9\d{3} – 1\.0000", tab.inner_text(f"{row} .interval"))
    row = f".jobs li:has(a[href='#/job/{failed}'])"
    assert tab.inner_text(f"{row} .job-title").split("\n")[0] == "baseline on quiz"
    reason = tab.inner_text(f"{row} .job-numbers")
    assert "<b>no such" in reason and "\n" not in reason
    tab.click(f"{row} a")
    tab.wait_for_selector(".failure")
    assert "<b>no such" in tab.inner_text(".failure") and tab.inner_text(".failure").count("\n") == 0
    assert tab.evaluate(FOCUSED) == "Evaluation"
    tab.wait_for_selector("pre.log")  # the log alone says more
    tab.focus("role=tab[name=Log]")
    tab.keyboard.press("ArrowRight")
    tab.wait_for_selector("text=Configuration file")
    assert (tab.evaluate(FOCUSED), "tab=command" in tab.url) == ("Command", True)


def test_a_first_evaluation_is_offered(page: Page, tabs: Tabs) -> None:
    tab = tabs.open(page.address)
    tab.click("text=Fill in the form")
    tab.wait_for_selector(".summary pre:has-text('pretrained=embedded')")
    tab.wait_for_selector(".chosen:has-text('megabench_demo')")
    tab.wait_for_selector(".chosen .lacking:has-text('no judge set'), .chosen .present", timeout=120_000)
    assert tab.query_selector(".first") is None
    assert tab.is_enabled("text=Start evaluation")


def test_a_first_result_takes_one_click(page: Page, tabs: Tabs) -> None:
    tab = tabs.open(page.address)
    tab.click(".first >> text=Start it")
    tab.wait_for_selector(".state-completed", timeout=120_000)
    tab.wait_for_selector(".headline-figures b")
    assert "MEGA-Bench" in tab.inner_text(".headline-figures")


def test_a_refused_start_is_told_at_its_field(page: Page, tabs: Tabs) -> None:
    tab = tabs.open(page.address)
    choose(tab, "baseline", "quiz")
    refusal = '{"detail": "limit: <b>more</b> than the server takes"}'
    tab.route("**/eval/start", lambda route: route.fulfill(status=400, body=refusal, content_type="application/json"))
    tab.click("text=Start evaluation")
    tab.wait_for_selector(".entry:has(#field-limit) .problem:has-text('<b>more</b> than')")
    tab.fill("#field-limit", "4")
    tab.wait_for_selector(".entry:has(#field-limit) .problem", state="detached")
    tabs.faults[:] = [fault for fault in tabs.faults if "400" not in fault]


def test_the_focus_stays_where_it_is(page: Page, tabs: Tabs) -> None:
    tab = tabs.open(page.address)
    tab.focus('.choice-row:has(b bdi:text-is("baseline"))')
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".picked")
    assert tab.evaluate(FOCUSED) == "Change"
    tab.keyboard.press("Enter")
    tab.wait_for_selector('input[aria-label="Search models"]')
    assert tab.evaluate(FOCUSED) == "Search models"
    tab.click("text=Keep baseline")
    for name in ("quiz", "slow_quiz"):
        tab.fill('input[aria-label="Search tasks"]', name)
        tab.focus(f'.task-row:has(b bdi:text-is("{name}")) input')
        tab.keyboard.press("Space")
        tab.wait_for_selector(f".chosen li:has(b bdi:text-is('{name}'))")
    tab.focus("[aria-label='Leave out quiz']")
    tab.keyboard.press("Enter")
    until(lambda: tab.evaluate(FOCUSED) == "Leave out slow_quiz")
    job = begin(tab)
    tab.wait_for_selector(".running tr:has-text('slow_quiz')", timeout=60_000)
    tab.focus("text=Stop")
    tab.wait_for_timeout(2500)  # the page asks for news meanwhile
    assert tab.evaluate(FOCUSED) == "Stop"
    tab.keyboard.press("Enter")
    assert tab.evaluate(FOCUSED) == "Stop it"
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".state-cancelled", timeout=60_000)
    assert state_of(page, job) == "cancelled"


def test_a_name_that_is_no_model_can_be_a_checkpoint(page: Page, tabs: Tabs) -> None:
    tab = tabs.open(page.address)
    tab.fill('input[aria-label="Search models"]', "someone/<b>VL-7B")
    tab.click("text=hf with pretrained=someone/<b>VL-7B")
    tab.wait_for_selector(".picked")
    assert tab.input_value("#argument-pretrained") == "someone/<b>VL-7B"


def test_a_start_whose_answer_is_lost_happens_once(page: Page, tabs: Tabs) -> None:
    tab = tabs.open(page.address)
    choose(tab, "baseline", "quiz")
    before = len(page.jobs())

    def lose(route: Any) -> None:
        route.fetch()
        route.abort()

    tab.route("**/eval/start", lose)
    tab.click("text=Start evaluation")
    tab.wait_for_selector(".start .problem")
    assert len(page.jobs()) == before + 1
    tab.click("text=Start evaluation")  # the same submission again
    tab.wait_for_selector("text=Start evaluation")
    tab.unroute("**/eval/start")
    tab.reload()
    tab.wait_for_selector("text=The last start was received")
    tab.click("text=see the evaluation")
    tab.wait_for_selector(".job-line")
    assert len(page.jobs()) == before + 1
    tabs.faults[:] = [fault for fault in tabs.faults if "ERR_FAILED" not in fault]


def test_a_start_that_never_arrived_is_sent_by_hand_alone(page: Page, tabs: Tabs) -> None:
    tab = tabs.open(page.address)
    choose(tab, "baseline", "quiz")
    before = len(page.jobs())
    tab.route("**/eval/start", lambda route: route.abort())
    tab.click("text=Start evaluation")
    tab.wait_for_selector(".start .problem")
    tab.unroute("**/eval/start")
    tab.reload()
    tab.wait_for_selector("text=did not reach the server")
    assert len(page.jobs()) == before
    begin(tab)
    assert len(page.jobs()) == before + 1
    tabs.faults[:] = [fault for fault in tabs.faults if "ERR_FAILED" not in fault]


def test_mistakes_stand_at_their_fields_and_nothing_starts(page: Page, tabs: Tabs) -> None:
    tab = tabs.open(page.address)
    choose(tab, "baseline", "quiz")
    tab.fill("#field-limit", "many")
    tab.wait_for_selector(".entry:has(#field-limit) .problem")
    assert tab.is_disabled("text=Start evaluation")
    tab.fill("#field-limit", "3")
    tab.wait_for_selector(".summary pre:has-text('--limit 3')")
    assert tab.is_enabled("text=Start evaluation")


def test_files_are_read_and_saved(page: Page, tabs: Tabs, tmp_path: Path) -> None:
    tab = tabs.open(page.address)
    tab.wait_for_selector(".choice-row")
    file = tmp_path / "run.yaml"
    file.write_text("model: baseline\nmodel_args: strategy=constant,text=7\ntasks: quiz\nlimt: 3\nlimit: 5\n")
    tab.set_input_files('input[type="file"]', file)
    tab.wait_for_selector("text=did you mean limit?")
    assert "line 4" in tab.inner_text(".summary .warnings")
    tab.wait_for_selector(".summary pre:has-text('--limit 5')")
    assert tab.input_value("#argument-strategy") == "constant"
    with tab.expect_download() as download:
        tab.click("text=Save YAML")
    assert "strategy: constant" in Path(download.value.path()).read_text()


def test_hostile_texts_are_only_texts(page: Page, tabs: Tabs, tmp_path: Path) -> None:
    name = "<img src=x onerror=alert(1)>"
    tab = tabs.open(page.address)
    tab.click('.choice-row:has(b bdi:text-is("baseline"))')
    tab.fill('input[aria-label="Search tasks"]', "<img")
    tab.check(".task-row input")
    tab.click(".task-row button.plain")
    tab.wait_for_selector(".about dl")
    file = tmp_path / "x.yaml"
    file.write_text(
        'model: baseline\ntasks: ["<img src=x onerror=alert(1)>"]\nmodel_args: {text: "<svg onload=alert(2)>\\u202e"}\n'
    )
    tab.set_input_files('input[type="file"]', file)
    tab.wait_for_selector(".chosen:has-text('onerror')")
    begin(tab)
    tab.wait_for_selector(".state-completed, .state-failed", timeout=60_000)
    assert name in tab.inner_text("h1")
    tab.goto(f"{page.root}#/jobs")
    tab.wait_for_selector(".jobs")
    assert tab.query_selector("img, svg[onload]") is None


def test_what_is_missing_is_told(page: Page, tabs: Tabs) -> None:
    tab = tabs.open(page.address)
    tab.fill('input[aria-label="Search tasks"]', "quiz")
    tab.click('.task-row:has(b bdi:text-is("quiz")) button.plain')
    tab.click("text=What is missing on this machine?")
    tab.wait_for_selector("text=data and packages are ready", timeout=120_000)
    tab.goto(f"{page.root}#/machine")
    tab.wait_for_selector("dt:has-text('CPU cores') + dd", timeout=120_000)
    values = tab.eval_on_selector_all("dt", "all => all.map(one => [one.innerText, one.nextElementSibling.innerText])")
    assert ["OPENAI_API_KEY", "present" if os.environ.get("OPENAI_API_KEY") else "absent"] in values
    assert dict(values)["Python"].startswith(platform.python_version())
    assert "Key values are never shown" in tab.inner_text("main")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_is_hard_to_read_or_to_reach(page: Page, tabs: Tabs, theme: str) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is installed by `make viewer`")
    tab = tabs.open(page.address)
    tab.emulate_media(color_scheme=theme)
    tab.wait_for_selector(".task-row")
    found = []
    choose(tab, "hf", "quiz")
    tab.click('.task-row:has(b bdi:text-is("quiz")) button.plain')
    tab.wait_for_selector(".about dl")
    job = page.jobs()[0]["job_id"]
    for address in ("#/", "#/jobs", f"#/job/{job}", f"#/job/{job}?tab=log", f"#/job/{job}?tab=command", "#/machine"):
        tab.goto(f"{page.root}{address}")
        tab.wait_for_selector("h1")
        tab.wait_for_timeout(800)
        tab.evaluate(AXE.read_text())
        found += [
            f"{address} {one['id']}: {[node['html'] for node in one['nodes']][:3]}"
            for one in tab.evaluate("axe.run()")["violations"]
        ]
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert found == []


def test_a_narrow_screen_needs_no_scrolling_sideways(page: Page, tabs: Tabs) -> None:
    tab = tabs.open(page.address)
    tab.set_viewport_size({"width": 400, "height": 800})
    tab.wait_for_selector(".task-row")
    for address in ("#/", "#/jobs", f"#/job/{page.jobs()[0]['job_id']}"):
        tab.goto(f"{page.root}{address}")
        tab.wait_for_selector("h1")
        tab.wait_for_timeout(500)
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
