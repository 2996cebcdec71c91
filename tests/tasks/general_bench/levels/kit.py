"""Result tables for tests."""

from lmms_eval.tasks.general_bench.facts import find_task, sheets
from lmms_eval.tasks.general_bench.levels.tables import Sheet, Table, template, with_column


def table_of(scores, model="m"):
    """The benchmark's table with scores by task name."""
    cells = {}
    for name, score in scores.items():
        task = find_task(name)
        cells.setdefault(task.sheet, {})[task.row] = score
    return with_column(template(), model, cells)


def specialists_scores():
    return {task.name: task.sound_specialist for rows in sheets().values() for task in rows}


def changed(table, sheet, change):
    """The table with one sheet put through a function of its ``Sheet``."""
    return Table(table.source, {**table.sheets, sheet: change(table.sheets[sheet])})


def renamed(sheet, row, column, value):
    """The sheet with another cell."""
    rows = [list(one) for one in sheet.rows]
    rows[row][column] = value
    return Sheet(sheet.columns, tuple(map(tuple, rows)))
