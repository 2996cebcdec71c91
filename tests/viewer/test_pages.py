"""The pages of a report in headless Chromium, opened from disk: no network, no error, no dialog."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from lmms_eval.cli.main import main
from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import write_report
from tests.results.runs import document, write_run
from tests.viewer.conftest import HOSTILE, Watched, painted, quiz_rows, until, write_task

LIST = "#/baseline%40letter/quiz"
INJECT = """() => {
    const tries = {
        textContent: "window.ran = 1",
        src: "data:text/javascript,window.ran=1",
    };
    for (const [name, value] of Object.entries(tries)) {
        const script = document.createElement("script");
        try { script[name] = value; document.body.append(script); } catch (error) { console.log(String(error)); }
    }
    try { document.body.innerHTML += "<img src=x onerror='ran=1'>"; } catch (error) { console.log(String(error)); }
}"""


@pytest.fixture(scope="module")
def report(quiz_runs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report") / "report"
    write_report([str(run) for run in quiz_runs], out, ReportOptions())
    return out


def rows(page: Any) -> list[str]:
    return [row.inner_text() for row in page.query_selector_all(".list a.row")]


def status(page: Any, text: str) -> None:
    until(page, "text => document.querySelector('[role=status]')?.innerText === text", text)


def test_first_page_holds_runs_with_intervals_and_a_matrix(report: Path, watched: Watched) -> None:
    page = watched.open(report)
    assert page.inner_text("h1") == "2 runs"
    runs = page.inner_text("section:has-text('Runs') table")
    assert "baseline@letter" in runs
    assert "strategy=constant,text=A" in runs
    assert "0.2899\n0.1962 – 0.4057" in runs  # 20 of 69, Wilson's interval
    matrix = page.inner_text("table.matrix")
    assert "quiz" in matrix
    assert "0.2899" in matrix
    page.click("th:has-text('Score') button")
    assert page.inner_text("tbody tr:first-child a").startswith("baseline@letter")  # the lower number comes first


def test_runs_are_found_and_chosen_by_keys(report: Path, watched: Watched) -> None:
    page = watched.open(report)
    painted(page)
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.ariaLabel") == "baseline@gold"
    page.keyboard.press("x")
    assert page.inner_text("#runs [role=status]") == "Choose one more"
    assert page.is_disabled("button:has-text('Compare 1 run')")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.wait_for_selector("button:enabled:has-text('Compare 2 runs')")
    page.keyboard.press("c")
    page.wait_for_selector("h1:text-is('Compare')")
    assert "run=baseline%40gold&run=baseline%40letter" in page.url
    page.go_back()
    page.wait_for_selector("#runs")
    painted(page)
    page.keyboard.press("/")
    page.keyboard.type("TEXT=a")
    until(page, "() => document.querySelectorAll('#runs tbody tr').length === 1")
    assert page.inner_text("#runs tbody a") == "baseline@letter"
    page.fill("#search", "nowhere")
    page.wait_for_selector("text=No run has “nowhere”.")


def test_a_run_without_a_score_says_why(tmp_path: Path, watched: Watched) -> None:
    outcomes = {"quiz": {"requested": 4, "scored": 2, "failed": 1, "not_asked": 1, "n": {"acc,none": 2}}}
    none = {"quiz": {"alias": "quiz", "acc,none": None}}
    write_run(tmp_path / "cut", None, document(state="interrupted", outcomes=outcomes))
    write_run(tmp_path / "withheld", None, document(state="withheld", outcomes=outcomes, results=none))
    write_report([str(tmp_path / "cut"), str(tmp_path / "withheld")], tmp_path / "r", ReportOptions(media="none"))
    page = watched.open(tmp_path / "r")
    cells = [" ".join(row.inner_text().split()) for row in page.query_selector_all("#runs tbody tr")]
    assert "interrupted Of 4 documents 1 failed, 1 were not asked" in cells[0]
    assert "withheld Score withheld: of 4 documents 1 failed, 1 were not asked" in cells[1]


def test_page_of_a_run_divides_by_metadata(report: Path, watched: Watched) -> None:
    page = watched.open(report, "#/baseline%40letter?page=details")
    page.wait_for_selector("h3:text-is('Command that continues the run')")
    page.click("[role=tab]:text-is('Breakdown')")
    page.wait_for_selector(".breakdown svg.plot")
    text = page.inner_text(".breakdown:has(h3 bdi:text-is('level'))")
    assert "\t24*" in text  # fifteen documents and the nine hostile ones
    page.click(".breakdown:has(h3 bdi:text-is('level')) tbody a >> nth=1")
    status(page, "15 of 69 samples")


def test_page_of_a_run_shows_what_needs_the_media(tmp_path: Path, watched: Watched) -> None:
    task = write_task(tmp_path / "task", quiz_rows(tmp_path / "task"))
    arguments = ["--model", "baseline", "--model_args", "strategy=constant,text=A", "--tasks", "quiz"]
    arguments += ["--include_path", str(task), "--ablate", "blank-media", "--output_path", str(tmp_path / "run")]
    assert main(["eval", *arguments]) == 0
    write_report([str(tmp_path / "run")], tmp_path / "report", ReportOptions())
    page = watched.open(tmp_path / "report", "#/baseline?page=breakdown")
    page.wait_for_selector("section:has-text('What needs the media')")
    section = page.inner_text("section:has-text('What needs the media')")
    assert "Without the media: blank-media." in section and "their score is a lower bound" in section
    first = page.inner_text("[aria-label^='What needs the media'] tbody tr:first-child").split()
    assert first[:5] == ["all", "documents", "20", "1.0000", "0.8389"] and "49" in first  # 20 of 69 documents are A
    page.set_viewport_size({"width": 400, "height": 800})
    page = watched.open(tmp_path / "report", "#/baseline?page=breakdown")
    page.wait_for_selector("section:has-text('What needs the media')")
    painted(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_many_ids_do_not_widen_the_first_page(quiz_runs: tuple[Path, Path], tmp_path: Path, watched: Watched) -> None:
    ids = ",".join(str(number) for number in range(0, 60, 2))
    arguments = [*map(str, quiz_runs), "--ids", ids, "--out", str(tmp_path / "report"), "--no_compare"]
    assert main(["report", *arguments]) == 0
    page = watched.open(tmp_path / "report")
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert "only samples by --ids 0,2,4" in page.inner_text("main")


def test_filters_and_order_stand_in_the_address(report: Path, watched: Watched) -> None:
    page = watched.open(report, LIST)
    status(page, "69 samples")
    page.click("button:has-text('Filters')")
    page.select_option("label:has-text('kind') select", "odd")
    status(page, "30 of 69 samples")
    page.fill("input[aria-label='Score, from']", "1")
    status(page, "10 of 69 samples")
    page.fill("label:has-text('Answer is') input", "b")
    status(page, "0 of 69 samples")
    page.click("button:text-is('Clear')")
    page.click(".row.head button:has-text('exact_match')")
    assert "sort=score" in page.url
    page.reload()
    page.wait_for_selector(".list a.row")
    assert "0" in rows(page)[0]
    status(page, "69 samples")


def test_search_reads_prompts_and_references(report: Path, watched: Watched) -> None:
    page = watched.open(report, LIST)
    painted(page)
    page.keyboard.press("/")
    page.keyboard.type("WHAT IS 41")
    status(page, "1 of 69 samples")
    assert rows(page)[0].startswith("41")
    page.fill("#search", "no such words")
    page.wait_for_selector("text=No sample matches these filters.")


def test_keys_move_and_open(report: Path, watched: Watched) -> None:
    page = watched.open(report, f"{LIST}?m.kind=odd")
    page.wait_for_selector(".list a.row")
    painted(page)
    for key in ("j", "j", "k", "Enter"):
        page.keyboard.press(key)
    page.wait_for_selector("text=2 of 30")
    assert page.url.endswith("/quiz/3?m.kind=odd")
    painted(page)
    page.keyboard.press("j")
    page.wait_for_selector("text=3 of 30")
    page.wait_for_selector("h1 >> text=What is 5 and one?")  # the rest of a heading is read from another file
    assert page.inner_text("h1") == "5 What is 5 and one?"
    painted(page)
    page.keyboard.press("u")
    status(page, "30 of 69 samples")
    painted(page)
    page.keyboard.press("?")
    assert "next, previous sample" in page.inner_text("[role=dialog]")
    page.keyboard.press("Escape")
    page.wait_for_selector("[role=dialog]", state="detached")


def test_one_sample_by_its_address(report: Path, watched: Watched) -> None:
    page = watched.open(report, f"{LIST}/7")
    page.wait_for_selector(".sample")
    assert "exact_match\n0" in page.inner_text(".sample")
    page = watched.open(report, "#/baseline%40gold/quiz/7")
    page.wait_for_selector(".sample")
    text = page.inner_text(".sample")
    assert "What is 7 and one?" in text
    assert "exact_match\n1" in text
    picture = page.wait_for_selector("figure img")
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") == 512
    page.click("summary:text-is('Raw JSON')")
    with page.expect_download() as download:
        page.click("button:text-is('Download')")
    assert json.loads(Path(download.value.path()).read_text())["doc_id"] == 7


def test_grid_of_pictures(report: Path, watched: Watched) -> None:
    page = watched.open(report, "#/baseline%40gold/quiz?view=grid")
    page.wait_for_selector(".tile img")
    assert page.evaluate("document.querySelectorAll('.tile').length") > 6


@pytest.mark.parametrize("place", range(len(HOSTILE)))
def test_hostile_text_is_text(report: Path, watched: Watched, place: int) -> None:
    page = watched.open(report, f"#/baseline%40gold/quiz/{60 + place}")
    page.wait_for_selector(".sample")
    text = page.inner_text(".sample")
    for hidden in "\u202e\u202c\x1b\x07\u2066\u2069\u200b":
        assert hidden not in text
    if place == 6:
        assert "safeU+202EevilU+202C U+001B[31mredU+0007" in text
    else:
        assert HOSTILE[place] in text
    assert page.query_selector("#app script, #app iframe, #app svg, #app style, #app i, #app u") is None


def test_hostile_values_of_metadata_are_labels(report: Path, watched: Watched) -> None:
    page = watched.open(report, "#/baseline%40gold?page=breakdown")
    page.wait_for_selector(".breakdown")
    assert "<b onclick=alert(10)>key</b>" in page.inner_text("main")
    assert "<i>one</i>" in page.inner_text("main")
    for address in (
        "#/baseline%40gold/quiz?q=%3Cscript%3Ealert(1)",
        "#/%3Cimg%20src%3Dx%3E",
        f"#/baseline%40gold/quiz/{quote('<svg onload=alert(1)>')}",
    ):
        watched.open(report, address).wait_for_timeout(300)


def test_scripts_without_the_nonce_do_not_run(report: Path, chromium: Any) -> None:
    page = chromium.new_page()
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.goto(f"{(report / 'index.html').as_uri()}#/")
    page.wait_for_selector("h1")
    page.evaluate(INJECT)
    assert page.evaluate("window.ran === undefined")
    assert sum("requires 'Trusted" in message for message in messages) >= 3
    page.close()


def test_narrow_pages_do_not_scroll_sideways(report: Path, watched: Watched) -> None:
    watched.page.set_viewport_size({"width": 400, "height": 800})
    tabs = [f"#/baseline%40letter?page={tab}" for tab in ("overview", "breakdown", "audit", "details")]
    for address in ("#/", *tabs, LIST, f"{LIST}/7", f"{LIST}?view=grid"):
        page = watched.open(report, address)
        painted(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address


def test_dark_and_light(report: Path, watched: Watched) -> None:
    page = watched.open(report)
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.click("button:text-is('Dark')")
    assert page.evaluate(ground) == "rgb(21, 24, 28)"
    page.reload()
    page.wait_for_selector("button:text-is('Light')")


def test_a_single_file_holds_everything(quiz_runs: tuple[Path, Path], tmp_path: Path, watched: Watched) -> None:
    out = tmp_path / "one.html"
    write_report([str(quiz_runs[0])], out, ReportOptions(single_file=True, limit=64))
    assert [path.name for path in tmp_path.iterdir()] == ["one.html"]
    page = watched.open(out, "#/baseline/quiz/60")
    page.wait_for_selector(".sample")
    assert HOSTILE[0] in page.inner_text(".sample")
    picture = page.wait_for_selector("figure img")
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") == 40


def _in_sight(page: Any, name: str) -> bool:
    """Tell whether the row of a sample is within the list's box."""
    told: bool = page.evaluate(
        """name => {
            const box = document.querySelector('.list').getBoundingClientRect();
            const links = [...document.querySelectorAll('.list a')];
            const row = links.find(one => one.hash.split('?')[0].endsWith('/' + name));
            const place = row?.getBoundingClientRect();
            return Boolean(place && place.top >= box.top && place.bottom <= box.bottom);
        }""",
        name,
    )
    return told


@pytest.mark.parametrize("view", ["", "?view=grid", "?sort=s.exact_match&down=1"])
def test_who_comes_back_from_a_sample_finds_the_list_as_it_was(report: Path, watched: Watched, view: str) -> None:
    page = watched.open(report, LIST + view)
    page.wait_for_selector(".list a")
    page.eval_on_selector(".list", "box => { box.scrollTop = box.scrollHeight / 2 + 7; }")
    until(page, "document.querySelector('.list .window').style.transform !== 'translateY(0px)'")
    painted(page)
    stood = page.eval_on_selector(".list", "box => box.scrollTop")
    assert stood > 100
    link = page.evaluate_handle(
        """() => {
            const top = document.querySelector('.list').getBoundingClientRect().top;
            return [...document.querySelectorAll('.list a')].find(one => one.getBoundingClientRect().top > top + 90);
        }"""
    ).as_element()
    name = link.get_attribute("href").split("?")[0].split("/")[-1]
    link.click()
    page.wait_for_selector(".sample")
    for go_back in (page.go_back, lambda: page.click("nav.steps a:text-is('List')")):
        go_back()
        page.wait_for_selector(".list a.selected")
        painted(page)
        assert page.eval_on_selector(".list", "box => box.scrollTop") == stood
        selected = page.get_attribute(".list a.selected", "href").split("?")[0]
        assert selected.endswith(f"/{name}") and _in_sight(page, name)
        page.click(".list a.selected")
        page.wait_for_selector(".sample")


def test_a_sample_to_which_one_has_gone_on_is_in_sight_in_its_list(report: Path, watched: Watched) -> None:
    page = watched.open(report, f"{LIST}/50")
    page.wait_for_selector(".sample")
    for number in ("51", "52"):
        page.click("nav.steps a:text-is('Next')")
        page.wait_for_selector(f"h1 bdi:text-is('{number}')")
    painted(page)
    page.keyboard.press("u")
    page.wait_for_selector(".list a.selected")
    painted(page)
    assert page.get_attribute(".list a.selected", "href").endswith("/52") and _in_sight(page, "52")


def test_a_list_is_accessible(report: Path, watched: Watched) -> None:
    """All pages, in dark mode and on narrow screens too: ``test_accessibility.py``, in ``make test-slow``."""
    from tests.viewer.test_accessibility import AXE, faults

    if not AXE.is_file():
        pytest.skip("accessibility is checked by axe-core, which `make viewer` installs")
    page = watched.open(report, LIST)
    page.wait_for_selector(".list a.row")
    found = faults(page)
    watched.faults.clear()  # axe tries to fetch style sheets, which the page's policy forbids
    assert found == []
