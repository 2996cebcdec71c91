from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from lmms_eval.exchange import table_forms
from lmms_eval.exchange.score_table import ScoreTable, TableOptions, score_table
from tests.cases import for_each
from tests.exchange.table_runs import right, write_table_run
from tests.tex import compiled, engines

HOSTILE = (r"\input{/etc/passwd} 100% a_b $x$", "<script>alert(1)</script>|模型", "=HYPERLINK(1) **b** [l](http://x)")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ScoreTable:
    """Runs with hostile names, one of a part of the documents."""
    folder = tmp_path_factory.mktemp("runs")
    for number, count in enumerate((36, 20, 4)):
        limited = {"n-samples": {"quiz": {"original": 400, "effective": 40}}} if number == 2 else {}
        write_table_run(folder / str(number), f"model{number}", right(count), **limited)
    return score_table([str(folder)], TableOptions(names=HOSTILE))


def test_markdown_is_a_table_with_notes(table: ScoreTable) -> None:
    text = table_forms.markdown(table)
    lines = text.splitlines()
    assert "|**90.0** [10.0, 90.0]" in lines[2] and "50.0†" in lines[3] and "10.0† [10.0, 90.0] (a)" in lines[4]
    assert "* (a) part of split: 40 of 400 documents" in lines
    page = MarkdownIt("commonmark").enable("table").render(text)
    assert page.count("<tr>") == 4 and "<script>" not in page and "href" not in page
    assert re.findall(r"<strong>(.*?)</strong>", page) == ["90.0"]


class _Cells(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_html_has_no_script_and_every_text(table: ScoreTable) -> None:
    page = table_forms.html(table)
    read = _Cells()
    read.feed(page)
    assert "script" not in read.tags and read.tags.count("tr") == 4 and read.tags.count("b") == 1
    assert all(name in read.texts for name in HOSTILE)
    assert "Content-Security-Policy" in page


def test_csv_has_a_line_for_each_number_in_full(table: ScoreTable) -> None:
    rows = list(csv.DictReader(io.StringIO(table_forms.csv_lines(table))))
    assert [float(row["value"]) for row in rows] == [0.9, 0.5, 0.1]
    assert [row["is_bold"] for row in rows] == ["True", "False", "False"]
    assert rows[2]["run"].startswith("'=HYPERLINK") and rows[2]["notes"] == "part of split: 40 of 400 documents"
    assert {row["about"] for row in rows} == {"questions like these"} and {row["n"] for row in rows} == {"40"}


@for_each("is_turned", [False, True])
def test_latex_compiles(table: ScoreTable, tmp_path: Path, is_turned: bool) -> None:
    text = table_forms.latex(table.turned() if is_turned else table)
    assert "\\toprule" in text and "\\caption[Scores: 1 number of 3 runs]" in text and "\\input" not in text
    for engine in engines():
        log = compiled(text, tmp_path / f"{engine}{is_turned}", engine)
        assert "Overfull \\hbox" not in log


def test_neighbours_of_one_name_share_it() -> None:
    from lmms_eval.exchange.score_table import Heading, TableCell

    names = ("A", "A", "B")
    made = table_forms.latex(
        ScoreTable(
            "t", ("c",), (), tuple(Heading(name, f"m{place}") for place, name in enumerate(names)), (Heading("run"),),
            ((TableCell("1"), TableCell("2"), TableCell("3")),), (),
        )
    )  # fmt: skip
    assert "{} & \\multicolumn{2}{c}{A} & B \\\\" in made and "\\cmidrule(lr){2-3}" in made


@for_each("place, letter", [(0, "a"), (25, "z"), (26, "aa"), (27, "ab"), (52, "ba")])
def test_letters_of_notes(place: int, letter: str) -> None:
    assert table_forms.note_letter(place) == letter
