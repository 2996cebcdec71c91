from __future__ import annotations

import csv
import json
import time
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import LmmsEvalError
from lmms_eval.results import export as module
from lmms_eval.results import load
from lmms_eval.results.export import FORMS, export
from tests.cases import for_each
from tests.results.runs import STAMP, sample, write_run

HOSTILE = {
    "filtered_resps": "=HYPERLINK(\"http://x\")", "target": "\t=1", "input": "a\x1b[31m\n,\"b",
    "doc": {"=cmd": "@x", "n": -5, "minus": "-1+2", "half": "\ud800"},
}  # fmt: skip


def exported(tmp_path: Path, form: str, rows: list[dict[str, Any]] | None = None) -> Path:
    run = load(write_run(tmp_path / "run", rows))
    path = tmp_path / f"samples.{form}"
    told = export(run.samples, form, path)
    assert told.rows == len(list(run.samples()))
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == [path.name]
    return path


def test_parquet_has_types_and_lists(tmp_path: Path) -> None:
    from pyarrow import parquet

    table = parquet.read_table(exported(tmp_path, "parquet"))
    types = {name: str(table.schema.field(name).type) for name in ("acc", "doc.year", "doc.tags", "media", "target")}
    assert types == {
        "acc": "double", "doc.year": "int64", "doc.tags": "list<element: string>", "media": "list<element: string>",
        "target": "string",
    }  # fmt: skip
    assert table["doc.tags"].to_pylist() == [["t", "0"], ["t", "1"], ["t", "2"], None]
    assert table["reason"].to_pylist() == [None, None, None, "timeout"]


def test_csv_is_read_back_and_holds_no_formulas(tmp_path: Path) -> None:
    with open(exported(tmp_path, "csv", [sample(0, **HOSTILE)]), newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert (row["prediction"], row["target"]) == ('\'=HYPERLINK("http://x")', "'\t'=1")
    assert (row["prompt"], row["acc"], row["doc.n"]) == ('a\x1b[31m\n,"b', "0.0", "-5")
    assert (row["doc.=cmd"], row["doc.minus"], row["doc.half"]) == ("'@x", "'-1+2", "?")
    assert json.loads(row["media"]) == ["/media/0.png"]


def test_json_lines_keep_what_is_nested(tmp_path: Path) -> None:
    path = exported(tmp_path, "jsonl", [sample(0, doc={"deep": {"a": [1, None]}}), sample(1, **HOSTILE)])
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert rows[0]["doc.deep"] == {"a": [1, None]}
    assert rows[1]["prediction"] == HOSTILE["filtered_resps"]
    assert list(rows[0]) == list(rows[1])


def test_workbooks_hold_numbers_and_harmless_texts(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="the extra xlsx")
    path = exported(tmp_path, "xlsx", [sample(0, **HOSTILE), sample(1)])
    heading, first, second = openpyxl.load_workbook(path)["samples"].iter_rows()
    cells = {name.value: cell for name, cell in zip(heading, first, strict=True)}
    assert (cells["prediction"].value, cells["prediction"].data_type) == ('\'=HYPERLINK("http://x")', "s")
    assert (cells["acc"].value, cells["doc.n"].value) == (0, -5)
    assert cells["prompt"].value == 'a\\u001b[31m\n,"b'
    assert "'t" not in [cell.value for cell in second]


def test_workbooks_that_are_full_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openpyxl", reason="the extra xlsx")
    monkeypatch.setattr(module, "MOST_ROWS", 3)
    monkeypatch.setattr(module, "LONGEST_CELL", 20)
    run = load(write_run(tmp_path, [sample(number, input="x" * 30) for number in range(5)]))
    told = export(run.samples, "xlsx", tmp_path / "x.xlsx")
    assert (told.rows, told.rows_left_out, told.cells_cut) == (2, 3, 2 + 2)
    assert len(told.notes) == 2


def test_an_unfinished_file_leaves_the_old_one(tmp_path: Path) -> None:
    run = load(write_run(tmp_path))
    calls = iter([run.samples(), iter([1])])
    path = tmp_path / "old.csv"
    path.write_text("old")
    with pytest.raises(AttributeError):
        export(lambda: next(calls), "csv", path)  # type: ignore[arg-type, return-value]
    assert path.read_text() == "old"
    with pytest.raises(LmmsEvalError, match="cannot write"):
        export(run.samples, "csv", path / "below" / "x.csv")


def test_an_empty_run_gives_an_empty_file(tmp_path: Path) -> None:
    for form in FORMS:
        run = load(write_run(tmp_path / form, []))
        assert export(run.samples, form, tmp_path / f"x.{form}").rows == 0


@for_each("form", ["parquet", "csv"])
def test_ten_thousand_samples_take_little_time(tmp_path: Path, form: str) -> None:
    path = write_run(tmp_path, [])
    text = json.dumps(sample(0))
    (tmp_path / f"{STAMP}_samples_quiz.jsonl").write_text((text + "\n") * 10_000)
    run = load(path)
    begin = time.process_time()
    assert export(run.samples, form, tmp_path / f"x.{form}").rows == 10_000
    assert time.process_time() - begin < 5
