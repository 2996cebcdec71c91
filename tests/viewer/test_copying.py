"""The buttons that copy a table of a page as LaTeX, Markdown or CSV."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import write_report
from tests.viewer.conftest import Watched, painted, until
from tests.viewer.test_comparison import three  # noqa: F401

CATCH = """() => Object.defineProperty(navigator, "clipboard", {
    value: { writeText: async (text) => { window.caught = text; } },
})"""
REFUSE = """() => {
    Object.defineProperty(navigator, "clipboard", { value: { writeText: async () => { throw new Error("no"); } } });
    document.execCommand = () => { window.caught = document.activeElement.value; return true; };
}"""
LETTER = "#/baseline%40letter"


@pytest.fixture(scope="module")
def report(quiz_runs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("copies") / "report"
    write_report([str(run) for run in quiz_runs], out, ReportOptions(media="none"))
    return out


def copies(page: Any, label: str, form: str) -> str:
    """Press the button of a table, and return what reaches the clipboard."""
    buttons = page.wait_for_selector(f'[role=group][aria-label="Copy {label} as"]')
    buttons.query_selector(f"button:text-is('{form}')").click()
    until(page, "window.caught !== undefined")
    assert f"{form} copied" in buttons.inner_text()
    text: str = page.evaluate("window.caught")
    return text


def test_results_as_csv_have_all_digits_and_the_ends_apart(report: Path, watched: Watched) -> None:
    page = watched.open(report, LETTER)
    page.evaluate(CATCH)
    (row,) = csv.DictReader(io.StringIO(copies(page, "Results", "CSV")))
    assert row["Task"] == "quiz exact_match" and row["Questions"] == "69"
    assert float(row["Score"]) == 20 / 69
    assert float(row["Score low"]) == pytest.approx(0.1962, abs=1e-4)
    assert float(row["Score high"]) == pytest.approx(0.4057, abs=1e-4)


def test_markdown_is_a_table_with_numbers_at_the_right(report: Path, watched: Watched) -> None:
    page = watched.open(report, LETTER)
    page.evaluate(CATCH)
    head, rule, row, end = copies(page, "Results", "Markdown").split("\n")
    assert end == "" and len({line.count("|") for line in (head, rule, row)}) == 1
    assert "| 0.2899 [0.1962, 0.4057] |" in row
    place = head.split(" | ").index("Score")
    assert rule.split(" | ")[place] == "---:"


def test_latex_compiles_with_names_of_any_signs(report: Path, watched: Watched, tmp_path: Path) -> None:
    page = watched.open(report, f"{LETTER}?page=breakdown")
    page.evaluate(CATCH)
    page.wait_for_selector(".breakdown")
    label = page.eval_on_selector(".breakdown [role=region]", "one => one.getAttribute('aria-label')")
    text = copies(page, label, "LaTeX")
    assert "\\toprule" in text and "\\midrule" in text and "\\bottomrule" in text
    page.click("[role=tab]:text-is('Overview')")
    assert "exact\\_match" in copies(page, "Results", "LaTeX")
    if shutil.which("pdflatex") is None:
        pytest.skip("no TeX engine is here")
    body = f"\\documentclass{{article}}\\usepackage{{booktabs}}\\begin{{document}}\n{text}\\end{{document}}\n"
    (tmp_path / "table.tex").write_text(body)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


def test_differences_have_one_pair_of_brackets(report: Path, watched: Watched) -> None:
    page = watched.open(report, "#/:compare?run=baseline%40gold&run=baseline%40letter")
    page.evaluate(CATCH)
    text = copies(page, "Differences", "Markdown")
    assert "quiz" in text and "[" in text
    assert "[[" not in text and "]]" not in text
    assert "both right" not in copies(page, "Documents by what the runs have right", "CSV")


def test_without_a_clipboard_a_selection_does(report: Path, watched: Watched) -> None:
    page = watched.open(report, LETTER)
    page.evaluate(REFUSE)
    assert copies(page, "Results", "CSV").startswith("Task,")
    assert page.query_selector("textarea") is None


def test_every_table_of_a_run_can_be_copied(report: Path, watched: Watched) -> None:
    for tab in ("overview", "breakdown", "audit", "details"):
        page = watched.open(report, f"{LETTER}?page={tab}")
        page.wait_for_selector("main table")
        painted(page)
        apart = page.evaluate(
            """() => [...document.querySelectorAll("main table")].filter(
                (one) => !one.closest(".unseen") && !one.closest(".tabled")?.querySelector(".copies")).length"""
        )
        assert apart == 0, tab


def test_letters_of_runs_are_copied_and_apart_from_names(
    three: tuple[Path, ...],  # noqa: F811
    watched: Watched,
    tmp_path: Path,
) -> None:
    write_report([str(run) for run in three], tmp_path / "report", ReportOptions(media="none"))
    page = watched.open(tmp_path / "report", "#/:compare?run=a&run=b&run=c")
    page.evaluate(CATCH)
    scores = copies(page, "Scores", "LaTeX")
    assert "$\\bigtriangleup$ better than " in scores and not set("▲▼○") & set(scores)
    assert all(re.search(r"(better|worse) than [ABC]", cell) for cell in scores.split("&") if " than" in cell)
    assert "A $-$ B a $-$ b" in copies(page, "Differences", "LaTeX")
