"""Every page follows the rules of WCAG 2 at level AA that axe-core can check: light, dark and narrow."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import lmms_eval.viewer
from lmms_eval.cli.main import main
from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import write_report
from tests.conversing import rated_run, talk_tasks, talked
from tests.results.runs import document, write_run
from tests.viewer.conftest import painted
from tests.viewer.test_audit import NAMES, audited_rows
from tests.viewer.test_benchmarks import PARTS
from tests.viewer.test_report import content

AXE = Path(lmms_eval.viewer.__file__).parent / "web/node_modules/axe-core/axe.min.js"
GOLD = "<gold>"
TASK = "#/<letter>/quiz"
COMPARISON = f"#/:compare?run={GOLD}&run=<letter>"
SHAPES = tuple(
    f"general_bench_demo_{name}"
    for name in (
        "image_comprehension_flood_area_segmentation",
        "video_comprehension_ball_tracking",
        "audio_comprehension_speech_command",
    )
)
RUNS = ("gold", "letter", "mile", "audited", "shapes", "agent", "repeated", "rated")
PAGES = {
    "first": ("#/", ""),
    "run": ("#/<letter>", ""),
    "breakdown": ("#/<letter>?page=breakdown", ""),
    "details": ("#/<rated>?page=details", ""),
    "run with parts of benchmarks": (f"#/{GOLD}?page=breakdown", ""),
    "run of MileBench": ("#/<mile>?page=breakdown", ""),
    "certainty": ("#/<repeated>", ""),
    "audit": ("#/<audited>?page=audit", ""),
    "comparison": (COMPARISON, ""),
    "one document of two runs": (COMPARISON, ".list a.row"),
    "list": (TASK, "summary:has-text('Columns')"),
    "filters": (TASK, "button:has-text('Filters')"),
    "grid": (f"{TASK}?view=grid", ""),
    "sample": (f"{TASK}/7", "summary:text-is('Raw JSON')"),
    "rendered": (f"#/{GOLD}/quiz/64", "button:text-is('Rendered')"),
    "hidden characters": (f"#/{GOLD}/quiz/66", ""),
    "General-Bench": ("#/<shapes>?page=breakdown", ""),
    "masks": (
        f"#/<shapes>/{SHAPES[0]}/0",
        "button:text-is('answer')",
    ),
    "boxes of frames": (f"#/<shapes>/{SHAPES[1]}/0", ""),
    "sound": (f"#/<shapes>/{SHAPES[2]}/0", ""),
    "conversation": ("#/<agent>/agent/0", ""),
    "repeats": ("#/<repeated>/repeated/0", ""),
    "judge": ("#/<rated>/rated/0", ""),
    "help": ("#/", "button:text-is('Shortcuts')"),
    "nothing": ("#/none", ""),
}
RUN = """() => axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }).then((found) =>
    found.violations.flatMap(({ id, nodes }) => nodes.slice(0, 3).map((node) =>
        `${id}: ${node.html.slice(0, 160)} ${node.any.map((check) => check.message).join(' ').slice(0, 200)}`)))"""


@pytest.fixture(scope="module")
def report(quiz_runs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of runs with all that a page can show."""
    folder = tmp_path_factory.mktemp("accessible")
    for run in quiz_runs:
        shutil.copytree(run, folder / run.name)
    (results,) = (folder / "gold").glob("*_results.json")
    results.write_text(json.dumps(json.loads(results.read_text()) | PARTS))
    arguments = ["--model", "baseline", "--model_args", "strategy=constant,text=A", "--tasks", "milebench_demo"]
    assert main(["eval", *arguments, "--output_path", str(folder / "mile"), "--log_samples"]) == 0
    write_run(folder / "audited", audited_rows(), document(**NAMES))
    arguments = ["--model", "baseline", "--tasks", ",".join(SHAPES), "--output_path", str(folder / "shapes")]
    assert main(["eval", *arguments, "--log_samples"]) == 0
    talk_tasks(folder / "tasks")
    for task in ("agent", "repeated"):
        talked(folder, task, None, output_path=str(folder / task))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "k")
        rated_run(folder, output_path=str(folder / "rated"))
    write_report([str(folder / name) for name in RUNS], folder / "report", ReportOptions())
    return folder / "report"


@pytest.fixture(scope="module", params=["light", "dark", "narrow"])
def page(request: pytest.FixtureRequest, chromium: Any) -> Any:
    if not AXE.is_file():
        pytest.skip("accessibility is checked by axe-core, which `make viewer` installs")
    context = chromium.new_context(
        viewport={"width": 400 if request.param == "narrow" else 1280, "height": 900},
        color_scheme="dark" if request.param == "dark" else "light",
    )
    context.set_default_timeout(5000)
    yield context.new_page()
    context.close()


def show(page: Any, report: Path, address: str) -> None:
    for folder, run in zip(RUNS, content(report, "runs")["runs"], strict=True):
        address = address.replace(f"<{folder}>", quote(run["name"], safe=""))
    page.goto("about:blank")
    page.goto(f"{(report / 'index.html').as_uri()}{address}")
    page.wait_for_selector("h1, .problem")
    painted(page)


def faults(page: Any) -> list[str]:
    page.evaluate(AXE.read_text())
    return list(page.evaluate(RUN))


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_accessible(report: Path, page: Any, name: str) -> None:
    address, pressed = PAGES[name]
    show(page, report, address)
    assert (page.query_selector(".problem") is not None) == (name == "nothing")
    if pressed:
        page.click(pressed)
        painted(page)
    assert faults(page) == []


def test_faults_are_found(report: Path, page: Any) -> None:
    show(page, report, "#/")
    page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert [fault.split(":")[0] for fault in faults(page)] == ["button-name"]


@pytest.mark.parametrize("name", ["details", "run with parts of benchmarks", "run of MileBench"])
def test_every_chart_names_a_table_of_its_numbers(report: Path, page: Any, name: str) -> None:
    show(page, report, PAGES[name][0])
    charts = page.query_selector_all("canvas")
    assert charts
    for chart in charts:
        table = page.query_selector(f"table[id='{chart.get_attribute('aria-details')}']")
        assert table is not None, chart.get_attribute("aria-label")
        assert any(sign.isdigit() for sign in table.text_content())  # also where it is folded away


def test_intervals_of_a_comparison_stand_beside_their_numbers(report: Path, page: Any) -> None:
    show(page, report, PAGES["comparison"][0])
    rows = page.query_selector_all("[aria-label=Differences] tr:has(svg.plot)")
    assert rows
    for row in rows:
        assert row.query_selector("svg.plot[aria-hidden='true']") is not None
        assert "[" in row.query_selector(".score small").inner_text()


CONTROLS = (
    "a[href]:not([role=tab][tabindex='-1']), button:enabled, input:enabled, select:enabled, summary, [tabindex='0']"
)
SHOWN = "[...document.querySelectorAll(controls)].filter((one) => one.checkVisibility({ visibilityProperty: true }))"
MARKED = f"controls => {SHOWN}.map((one, at) => (one.dataset.at = at, one.outerHTML.slice(0, 120)))"
FOCUSED = "(at => [at.dataset.at, getComputedStyle(at).outlineStyle])(document.activeElement)"


@pytest.mark.parametrize("page", ["light"], indirect=True)
@pytest.mark.parametrize("name", ["first", "run", "breakdown", "details", "comparison", "filters", "masks", "audit"])
def test_keys_reach_every_control_and_show_where_they_are(report: Path, page: Any, name: str) -> None:
    address, pressed = PAGES[name]
    show(page, report, address)
    if pressed:
        page.click(pressed)
        painted(page)
    controls = page.evaluate(MARKED, CONTROLS)
    assert len(controls) > 4
    page.evaluate("document.getElementById('content').focus({ preventScroll: true })")
    page.keyboard.press("Shift+Tab")
    outlines = {}
    for _ in range(2 * len(controls) + 20):  # rows of a list come into the page as they are reached
        at, outline = page.evaluate(FOCUSED)
        outlines[at] = outline
        page.keyboard.press("Tab")
    assert [control for at, control in enumerate(controls) if outlines.get(str(at), "none") == "none"] == []


@pytest.mark.parametrize("name", ["run", "breakdown", "audit"])
def test_every_plot_has_its_numbers_in_its_row(report: Path, page: Any, name: str) -> None:
    show(page, report, PAGES[name][0])
    page.wait_for_selector("svg.plot", state="attached")
    apart = page.evaluate("""[...document.querySelectorAll("svg.plot")].filter(
        (plot) => !/\\d/.test(plot.closest("tr").querySelector(".score")?.textContent ?? "")).length""")
    assert apart == 0


@pytest.mark.parametrize("page", ["light"], indirect=True)
def test_the_focus_follows_the_page(report: Path, page: Any) -> None:
    focused = "document.activeElement.id || document.activeElement.textContent"
    show(page, report, f"{TASK}")
    assert page.evaluate(focused) != "content", "nothing is taken from who has just opened the page"
    page.focus(".list a.row >> nth=2")
    page.keyboard.press("Enter")
    page.wait_for_selector(".sample")
    assert page.evaluate(focused) == "content"
    assert "quiz" in page.get_attribute("#content", "aria-label")
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "List", "the first control of the new page is next"


@pytest.mark.parametrize("page", ["light"], indirect=True)
def test_the_help_takes_the_focus_and_gives_it_back(report: Path, page: Any) -> None:
    show(page, report, "#/")
    page.focus("a.line")
    page.keyboard.press("?")
    page.wait_for_selector("[role=dialog]")
    assert page.evaluate("document.activeElement.textContent.trim()") == "Close"
    page.keyboard.press("Escape")
    page.wait_for_selector("[role=dialog]", state="detached")
    assert page.evaluate("document.activeElement.className") == "line"


@pytest.mark.parametrize("page", ["narrow"], indirect=True)
def test_the_matrix_shows_numbers_without_scrolling(report: Path, page: Any) -> None:
    show(page, report, "#/")
    shown = page.evaluate("""[...document.querySelectorAll('.matrix .score b')].filter((one) => {
        const [box, around] = [one.getBoundingClientRect(), one.closest('.scroll').getBoundingClientRect()];
        return box.left >= around.left && box.right <= around.right;
    }).length""")
    assert shown > 0
    name = page.query_selector(".matrix tbody th:has-text('flood')")
    assert name.inner_text() == SHAPES[0], "names are whole"
    assert page.query_selector(".matrix thead a").get_attribute("aria-label")
    page.evaluate("document.querySelector('.matrix').closest('.scroll').scrollLeft = 200")
    edge = page.evaluate("document.querySelector('.matrix').closest('.scroll').getBoundingClientRect().left")
    assert name.bounding_box()["x"] == pytest.approx(edge, abs=1), "names stay in sight"
