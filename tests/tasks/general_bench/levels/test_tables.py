import math

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.levels.tables import LevelRow, Sheet, Table, column, exact_number, reference_number
from tests.cases import for_each

SHEET = Sheet(("No", "Task Name", "Metrics", "Emu2", "emu2"), ((1, "A", "ACC", 3, 4), (2, None, None, None, 5)))


def test_columns_are_found_without_case_and_the_first_counts():
    assert column(SHEET, "s", "EMU2") == (LevelRow("A", "ACC", 3), LevelRow("", "", None))


def test_absent_columns_are_named_with_those_there():
    with pytest.raises(DataError, match="s: no column 'x'; columns: 'No', 'Task Name'"):
        column(SHEET, "s", "x")


def test_a_sheet_of_levels_holds_no_tasks():
    assert list(Table("t", {"NLP": SHEET, "LEVEL-scores": SHEET}).task_sheets) == ["NLP"]


@for_each(
    ("cell", "number"),
    [(None, math.inf), (" ∞", math.inf), ("Inf ", math.inf), ("n/a", math.inf), ("12.5%", math.inf), ("1e2", 100),
     (True, 1), ("-inf", -math.inf), (3, 3), ("nan", math.inf)],
)  # fmt: skip
def test_cells_as_the_reference_reads_them(cell, number):
    assert reference_number(cell) == number


def test_exact_numbers():
    assert exact_number(" 7.5 ") == 7.5
    assert exact_number("∞") is None
    with pytest.raises(DataError, match="no finite number"):
        exact_number("-inf")
    with pytest.raises(DataError, match="no number"):
        exact_number(10**400)
