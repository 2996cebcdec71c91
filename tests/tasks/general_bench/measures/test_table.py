"""The table of metrics, and the page that is made of it."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import lmms_eval.tasks.general_bench as package
from lmms_eval.cli.main import main
from lmms_eval.tasks.general_bench.facts import metrics, tasks
from lmms_eval.tasks.general_bench.measures import registry
from tests.cases import for_each

PAGE = Path(package.__path__[0]) / "METRICS.md"


def test_the_page_is_what_the_command_prints(capsys):
    assert main(["general-bench", "metrics"]) == 0
    printed = capsys.readouterr().out
    assert printed == registry.markdown()
    head, start, _ = PAGE.read_text(encoding="utf-8").partition("| metric |")
    assert "lmms-eval general-bench metrics" in head
    assert PAGE.read_text(encoding="utf-8") == head + printed, f"{PAGE.name}: put the command's output below its head"
    assert start


def test_every_metric_has_a_row():
    titles = [row[0] for row in registry.metric_rows() if row[0]]
    assert titles == [metric.title for metric in metrics().values()]
    assert len(titles) == 63


def test_the_numbers_of_tasks_add_up():
    assert sum(int(row[1]) for row in registry.metric_rows() if row[1]) == len(tasks()) == 699


@for_each("line", registry.lines(), ids=lambda line: line.measure)
def test_every_measure_says_what_it_is_checked_against(line):
    measure = line.load()
    assert measure.name == line.measure
    assert measure.checked.strip()


@for_each("line", registry.lines(), ids=lambda line: line.measure)
def test_every_line_is_reached_by_a_task(line):
    assert any(
        line.metric == task.metric and fnmatchcase(task.sheet, line.sheets) and fnmatchcase(task.id, line.tasks)
        for task in tasks()
    )


def test_cells_cannot_break_the_table():
    widths = {line.replace("\\|", "").count("|") for line in registry.markdown().splitlines()}
    assert widths == {len(registry.HEADINGS) + 1}
