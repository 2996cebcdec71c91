from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lmms_eval.compare.readers import read_runs
from lmms_eval.compare.readers.other_harnesses import names
from lmms_eval.errors import DataError, UsageError
from lmms_eval.tasks._task_utils import workbooks
from tests.cases import for_each

ROWS = [
    {"index": 1, "question": "Which?", "prediction": "A", "answer": "A", "hit": 1, "category": "x", "l2-category": "l"},
    {"index": 2, "question": "Who?", "prediction": "B", "answer": "A", "hit": 0, "category": "x", "l2-category": "l"},
    {"index": 3, "question": "Why?", "prediction": "Failed to obtain answer via API.", "answer": "C", "hit": 0,
     "category": "y", "l2-category": "l"},
    {"index": 4, "question": "How?", "prediction": "D", "answer": "D", "hit": None, "category": "y",
     "l2-category": "l"},
]  # fmt: skip


def text_table(path: Path, delimiter: str) -> Path:
    rows = [list(ROWS[0]), *(["" if value is None else str(value) for value in row.values()] for row in ROWS)]
    path.write_text("\ufeff" + "\n".join(delimiter.join(row) for row in rows))
    return path


@pytest.mark.parametrize("ending", ["xlsx", "csv", "tsv"])
def test_tables_are_read_from_every_form(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"Model-7B_MMBench_DEV_EN_gpt-4o-mini_result.{ending}"
    if ending == "xlsx":
        pytest.importorskip("openpyxl")
        workbooks.write_rows(ROWS, path)
    else:
        text_table(path, {"csv": ",", "tsv": "\t"}[ending])
    (run,) = read_runs([str(path)])
    task = run.tasks["MMBench_DEV_EN"]
    assert (run.name, run.kind) == ("Model-7B", "vlmevalkit")
    assert list(task.ids) == ["1", "2", "3", "4"]
    assert task.statuses == ["scored", "scored", "failed", "unscored"]
    np.testing.assert_array_equal(task.columns["hit,none"].scores, [1, 0, np.nan, np.nan])
    assert task.metadata() == {"category": ["x", "x", "y", "y"], "l2-category": ["l"] * 4}
    answer = task.answer(1)
    assert answer is not None
    assert (answer.text, answer.target, answer.prompt) == ("B", "A", "Who?")
    assert len(run.notes) == 2


@for_each(
    ("name", "found"),
    [
        ("Model_MMStar.xlsx", ("Model", "MMStar")),
        ("Model/Model_MMStar.xlsx", ("Model", "MMStar")),
        ("My_Model/T2024/My_Model_MMBench_DEV_EN.tsv", ("My_Model", "MMBench_DEV_EN")),
        ("Model_MMStar_exact_matching_result.xlsx", ("Model", "MMStar")),
        ("Model_MathVista_MINI_gpt-4-turbo_score.csv", ("Model", "MathVista_MINI")),
        ("table.csv", ("table", "table")),
    ],
)
def test_model_and_dataset_come_from_the_name(name: str, found: tuple[str, str]) -> None:
    assert names(Path("/out") / name) == found


def test_a_workbook_without_openpyxl_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openpyxl")
    workbooks.write_rows(ROWS, tmp_path / "Model_MMStar.xlsx")

    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(workbooks.importlib, "import_module", absent)
    with pytest.raises(UsageError, match=r"openpyxl: pip install"):
        read_runs([str(tmp_path / "Model_MMStar.xlsx")])


def test_a_row_without_an_index_is_named(tmp_path: Path) -> None:
    path = tmp_path / "Model_MMStar.csv"
    path.write_text("index,prediction,hit\n1,A,1\n,B,0\n")
    with pytest.raises(DataError, match=r"Model_MMStar.csv, line 3: no index"):
        read_runs([str(path)])
