import datetime
import sys
import zipfile

import pytest

from lmms_eval.errors import DataError, UsageError
from lmms_eval.tasks.general_bench.levels.paper import rank_paper
from lmms_eval.tasks.general_bench.levels.tables import (
    read_result_table,
    read_workbook,
    template,
    with_column,
    write_rows,
    write_workbook,
)
from tests.cases import for_each
from tests.parity.vectors import DATA_DIR
from tests.tasks.general_bench.levels.kit import table_of

TEMPLATE = DATA_DIR / "general_bench" / "template_result.xlsx"
SCORES = {"Causal Reasoning": 70.25, "Deep Fake Generation": 5, "SongGeneration": 0.0}


def test_all_three_forms_hold_the_same(tmp_path):
    table = table_of(SCORES, "My Model")
    write_workbook(table, tmp_path / "x.xlsx")
    rows = write_rows(table, "My Model", tmp_path / "x")
    found = [read_result_table(path, "My Model") for path in (tmp_path / "x.xlsx", *rows)]
    assert found[0].sheets == table.sheets
    levels = [rank_paper("my model", one).levels for one in (table, *found)]
    assert levels[0] == levels[1] == levels[2] == levels[3]
    assert levels[0][3] > 0


def test_a_cell_of_a_csv_file_is_what_a_workbook_would_hold(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("sheet,task_name,metric,score\nNLP,a,ACC,7.5\nNLP,b,ACC,\nNLP,c,ACC,n/a\n", encoding="utf-8")
    assert [row[-1] for row in read_result_table(path, "m").sheets["NLP"].rows] == [7.5, None, "n/a"]


@pytest.mark.skipif(not TEMPLATE.is_file(), reason=f"no {TEMPLATE}")
def test_the_template_equals_the_published_one():
    assert read_workbook(TEMPLATE).sheets == template().sheets


@for_each(
    ("name", "content", "reason"),
    [
        ("a.xlsx", b"no workbook", "cannot be read as a workbook"),
        ("a.xlsx", b"", "cannot be read as a workbook"),
        ("a.json", b'{"rows": [', "cannot be read"),
        ("a.json", b"{}", "no list of rows"),
        ("a.json", b"[3]", "no list of rows"),
        ("a.json", b"[]", "no column sheet"),
        ("a.csv", b"sheet,task_name\nNLP,x\n", "no column metric, score"),
        ("a.csv", b"\xff\xfe", "cannot be read"),
        ("a.txt", b"", "no known kind"),
    ],
)
def test_files_that_are_no_result_tables(tmp_path, name, content, reason):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=reason):
        read_result_table(path, "m")


def test_an_absent_file_and_an_archive_that_is_no_workbook(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_result_table(tmp_path / "absent.xlsx", "m")
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as archive:
        archive.writestr("x", "y")
    with pytest.raises(DataError, match="cannot be read as a workbook"):
        read_workbook(tmp_path / "a.xlsx")


def test_without_openpyxl_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(UsageError, match=r"lmms_eval\[xlsx\]"):
        write_workbook(template(), tmp_path / "x.xlsx")


def test_a_file_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="cannot be written"):
        write_rows(with_column(template(), "m", {}), "m", tmp_path / "file" / "x")


def test_workbooks_that_people_worked_on(tmp_path):
    """What people do to a workbook: a sheet of levels, a date for a score, a formatted row below."""
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "x.xlsx"
    write_workbook(table_of(SCORES), path)
    book = openpyxl.load_workbook(path)
    book.create_sheet("level-scores")
    sheet = book["NLP"]
    sheet["E2"] = datetime.date(2025, 7, 11)
    sheet["E130"] = None
    sheet["A130"].font = openpyxl.styles.Font(bold=True)
    book.save(path)
    ranked = rank_paper("m", read_workbook(path))
    assert len(ranked.problems) == 1
    assert "sheet NLP, row 2 ('Commonsense Reasoning')" in ranked.problems[0]
    assert len(ranked.missing) == 699 - len(SCORES)


def test_a_workbook_that_grows_beyond_measure_is_not_read(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w", zipfile.ZIP_DEFLATED) as packed, packed.open("xl/big", "w") as file:
        for _ in range(257):
            file.write(bytes(2**20))
    assert (tmp_path / "a.xlsx").stat().st_size < 2**20
    with pytest.raises(DataError, match="269484032 bytes unpacked; 268435456 are read at most"):
        read_workbook(tmp_path / "a.xlsx")
