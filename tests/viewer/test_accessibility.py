"""Every page follows the rules of WCAG 2 at level AA that axe-core can check: light, dark and narrow."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import lmms_eval.viewer
from lmms_eval.cli.main import main
from lmms_eval.viewer.options import ReportOptions
from lmms_eval.viewer.report import write_report
from tests.results.run_reader.runs import document, write_run
from tests.viewer.test_audit import NAMES, audited_rows
from tests.viewer.test_benchmarks import PARTS

AXE = Path(lmms_eval.viewer.__file__).parent / "web/node_modules/axe-core/axe.min.js"
LISTENS_MS = 500
GOLD = "baseline%40gold"
TASK = "#/baseline%40letter/quiz"
COMPARISON = f"#/:compare?run={GOLD}&run=baseline%40letter"
PAGES = {
    "first": ("#/", ""),
    "run": ("#/baseline%40letter", ""),
    "run with parts of benchmarks": (f"#/{GOLD}", ""),
    "run of MileBench": ("#/baseline%40mile", ""),
    "audit": ("#/org%2Fmodel?page=audit", ""),
    "comparison": (COMPARISON, ""),
    "one document of two runs": (COMPARISON, ".list a.row"),
    "list": (TASK, "summary:has-text('Columns')"),
    "filters": (TASK, "button:has-text('Filters')"),
    "grid": (f"{TASK}?view=grid", ""),
    "sample": (f"{TASK}/7", "summary:text-is('Raw JSON')"),
    "rendered": (f"#/{GOLD}/quiz/64", "button:text-is('Rendered')"),
    "hidden characters": (f"#/{GOLD}/quiz/66", ""),
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
    runs = [str(folder / name) for name in ("gold", "letter", "mile", "audited")]
    write_report(runs, folder / "report", ReportOptions())
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
    page.goto("about:blank")
    page.goto(f"{(report / 'index.html').as_uri()}{address}")
    page.wait_for_selector("h1, .problem")
    page.wait_for_timeout(LISTENS_MS)


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
        page.wait_for_timeout(LISTENS_MS)
    assert faults(page) == []


def test_faults_are_found(report: Path, page: Any) -> None:
    show(page, report, "#/")
    page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert [fault.split(":")[0] for fault in faults(page)] == ["button-name"]


@pytest.mark.parametrize("name", ["run", "run with parts of benchmarks", "run of MileBench", "audit", "comparison"])
def test_every_chart_names_a_table_of_its_numbers(report: Path, page: Any, name: str) -> None:
    show(page, report, PAGES[name][0])
    charts = page.query_selector_all("canvas")
    assert charts
    for chart in charts:
        table = page.query_selector(f"table[id='{chart.get_attribute('aria-details')}']")
        assert table is not None, chart.get_attribute("aria-label")
        assert any(any(sign.isdigit() for sign in text) for text in table.inner_text().split())
