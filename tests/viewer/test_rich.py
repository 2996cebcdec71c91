"""Markdown and formulas are rendered on demand; at first texts stand as they were written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import write_report
from tests.viewer.conftest import Watched, painted, run_task, write_task

TEXT = r"""# Title

**Bold** and *slanted*, `code`, costs $5 and $10.

1. one $x^2 + \frac{1}{2}$
2. two \(\mathbb{R}\)

$$
\begin{aligned} a &= b \\ c &= d \end{aligned}
$$

| left | right |
|:--|--:|
| A | \$1 |

> quoted

```python
print("<b>")
```
\[ \boxed{42}
\]
Answer: \unknown $\unknown{x}$"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rich")
    rows = [{"question": TEXT, "answer": text, "media": []} for text in ("**A**", "B")]
    run = run_task(write_task(folder / "task", rows), folder / "run", "strategy=gold")
    write_report([str(run)], folder / "report", ReportOptions())
    return folder / "report"


def opened(report: Path, watched: Watched, doc: int = 0) -> Any:
    page = watched.open(report, f"#/baseline/quiz/{doc}")
    page.wait_for_selector(".sample")
    painted(page)
    return page


def test_texts_stand_as_written_until_they_are_to_be_rendered(report: Path, watched: Watched) -> None:
    page = opened(report, watched)
    prompt = ".block:has(h2:text-is('Prompt'))"
    assert page.inner_text(f"{prompt} pre.text") == TEXT
    page.keyboard.press("m")
    page.wait_for_selector(".rich")
    assert page.query_selector("details:has(summary:text-is('Raw JSON')) .rich") is None
    assert page.inner_text(".block:has(h2:text-is('Answer')) strong") == "A"
    page.keyboard.press("j")  # the choice holds for the next sample
    page.wait_for_selector("text=2 of 2")
    page.wait_for_selector(".rich")
    page.click("button:text-is('As written')")
    assert page.inner_text(f"{prompt} pre.text") == TEXT


def test_markdown_becomes_elements(report: Path, watched: Watched) -> None:
    page = opened(report, watched)
    page.keyboard.press("m")
    rich = page.wait_for_selector(".block:has(h2:text-is('Prompt')) .rich")
    found = {
        tag: [one.inner_text() for one in rich.query_selector_all(tag)] for tag in ("h4", "strong", "em", "td", "pre")
    }
    assert found == {
        "h4": ["Title"],
        "strong": ["Bold"],
        "em": ["slanted"],
        "td": ["A", "$1"],
        "pre": ['print("<b>")'],
    }
    assert rich.query_selector("td.to-right") is not None
    assert "costs $5 and $10." in rich.inner_text()
    assert rich.query_selector_all("code")[-1].inner_text() == r"$\unknown{x}$"  # what cannot be set stays as it was


def test_formulas_become_mathml(report: Path, watched: Watched) -> None:
    page = opened(report, watched)
    page.keyboard.press("m")
    page.wait_for_selector(".rich math")
    rich = ".block:has(h2:text-is('Prompt')) .rich"
    formulas = page.query_selector_all(f"{rich} math")
    assert [formula.get_attribute("display") for formula in formulas] == [None, None, "block", "block"]
    assert {formula.evaluate("one => one.namespaceURI") for formula in formulas} == {
        "http://www.w3.org/1998/Math/MathML"
    }
    fraction = formulas[0].query_selector("mfrac")
    top, bottom = (fraction.query_selector(f"*:nth-child({place})").bounding_box() for place in (1, 2))
    assert top["y"] + top["height"] <= bottom["y"]  # drawn as a fraction, not as a row
    assert re.sub(r"\s", "", formulas[1].text_content()) == "ℝ"
    cells = formulas[2].query_selector_all("mtd")
    assert [cell.get_attribute("class") for cell in cells] == ["to-right", "to-left"] * 2
    assert formulas[3].query_selector("menclose").evaluate("one => getComputedStyle(one).borderTopWidth") == "1px"
