from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

pytest.importorskip("matplotlib")

from lmms_eval.compare.table import forest_plot
from lmms_eval.compare.verdicts import Comparison, Difference, PairComparison, Pairing
from lmms_eval.errors import UsageError
from lmms_eval.plots.figure import plain
from lmms_eval.plots.forest import MOST_ROWS, ForestPanel, ForestRow, forest_panels
from lmms_eval.stats import Interval


def _row(number: int, look="up", name: str = "task") -> ForestRow:
    return ForestRow(f"{name} {number}", 1.0 + number, number, 2.0 + number, look, "better", 1234)


def _labels(axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def test_rows_have_point_interval_word_and_documents():
    panel = ForestPanel("a − b", "points", (_row(0), ForestRow("none", 2.0, None, None, "open", "cannot tell", 7)), 0.5)
    axes, right = forest_panels("Title", [panel]).axes
    assert _labels(axes) == ["task 0", "none"]
    assert _labels(right) == ["better, n = 1,234", "cannot tell, n = 7"]
    drawn = [list(line.get_xdata()) for line in axes.lines]
    assert [0.0, 2.0] in drawn  # the interval
    assert [1.0] in drawn
    assert [0.0, 0.0] in drawn  # the zero line
    low, high = axes.get_xlim()
    assert low < -0.5
    assert high > 2.0
    (band,) = axes.patches
    assert band.get_xy()[0] == -0.5


def test_verdicts_differ_by_shape():
    rows = tuple(_row(number, look) for number, look in enumerate(("up", "down", "same", "open")))
    axes, _ = forest_panels("Title", [ForestPanel("p", "points", rows)]).axes
    assert len({line.get_marker() for line in axes.lines if line.get_linestyle() == "None"}) == 4


def test_picture_grows_with_its_rows_up_to_a_limit_and_says_what_is_folded():
    def figure(count):
        return forest_panels("Title", [ForestPanel("p", "points", tuple(_row(number) for number in range(count)))])

    heights = [figure(count).get_size_inches()[1] for count in (3, 60, MOST_ROWS + 1, 500)]
    assert heights[0] < heights[1] < heights[2] == heights[3]
    labels = _labels(figure(500).axes[0])
    assert len(labels) == MOST_ROWS + 1
    assert labels[-1] == "… 380 more rows are not drawn"


def test_panels_of_one_axis_share_their_limits_and_others_do_not():
    panels = [ForestPanel("p", axis, (_row(number),)) for number, axis in enumerate(("points", "points", "score"))]
    first, second, third, *_ = forest_panels("Title", panels).axes
    assert first.get_xlim() == second.get_xlim()
    assert third.get_xlim() != second.get_xlim()


@pytest.mark.parametrize("text", ["$x^2$", "\\frac{1", "$", "a\x1b[31mb", "\u202eabc", "x" * 500, "$$\\bad{", "日本"])
def test_hostile_names_are_drawn_as_text(text):
    pair = PairComparison(text, text, [_difference(text)])
    svg = forest_plot(Comparison([text], [pair], 0.01), ".svg")
    ET.fromstring(svg)
    assert b"\x1b" not in svg
    assert len(plain(text, 44)) < 60


def _difference(name: str = "quiz", **facts) -> Difference:
    usual = {"unit": "percent", "interval": Interval(-0.02, 0.04, "t"), "verdict": "cannot tell"}
    return Difference(name, "acc", "none", 0.5, 0.49, 0.01, p=0.4, pairing=Pairing(100), **{**usual, **facts})


def test_comparison_is_drawn_in_percent_points_and_other_units_apart():
    pair = PairComparison("a", "b", [_difference(), _difference("level", unit="", interval=None, no_interval="n = 1")])
    found = [forest_plot(Comparison(["a", "b"], [pair], None), ending) for ending in (".png", ".svg")]
    assert [content[:5] for content in found] == [b"\x89PNG\r", b"<?xml"]
    assert forest_plot(Comparison(["a", "b"], [], None), ".PNG").startswith(b"\x89PNG")


def test_other_endings_are_said():
    comparison = Comparison(["a", "b"], [PairComparison("a", "b", [_difference()])], None)
    with pytest.raises(UsageError, match=r"\.png, \.svg, \.pdf, not as '\.jpg'"):
        forest_plot(comparison, ".jpg")
