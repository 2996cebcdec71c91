import math

import pytest

pytest.importorskip("matplotlib")

from lmms_eval.plots.figure import INK
from lmms_eval.plots.grid import CellGrid, grid_panels

LABELS = ("depth", "length", "score")


def test_cells_show_their_numbers_and_empty_ones_none():
    grid = CellGrid("one", ("0", "50"), ("1k", "2k"), ((0.0, 100.0), (None, 60.4)))
    axes, bar = grid_panels("Title", [grid, CellGrid("none", (), (), ())], *LABELS).axes
    assert [text.get_text() for text in axes.texts] == ["0", "100", "60"]
    assert [text.get_color() for text in axes.texts] == [INK, "white", "white"]
    values = axes.images[0].get_array().filled(math.nan)
    assert values[0].tolist() == [0, 100]
    assert math.isnan(values[1][0])
    assert axes.images[0].get_clim() == (0, 100)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "50"]
    assert bar.get_ylabel() == "score"


def test_cells_state_their_counts_and_what_white_means():
    grid = CellGrid("one", ("0",), ("1k", "2k"), ((0.0, None),), ((3, 0),))
    figure = grid_panels("Title", [grid], *LABELS)
    assert [text.get_text() for text in figure.axes[0].texts] == ["0\nn = 3"]
    assert figure.get_supxlabel() == "n: samples of a cell; white without a number: no sample"


def test_nothing_to_draw_is_an_empty_figure():
    assert grid_panels("Title", [], *LABELS).axes == []
