import pytest

pytest.importorskip("matplotlib")

from lmms_eval.plots.bars import Bar, bar_panels
from lmms_eval.plots.figure import save


def test_every_panel_with_bars_is_drawn_with_its_values():
    figure = bar_panels("Title", {"one": (Bar("a", 0.25, 0.1, 0.4), Bar("b", 1.0)), "none": ()}, "score")
    (axes,) = figure.axes
    assert axes.get_title(loc="left") == "one"
    assert [patch.get_width() for patch in axes.patches] == [0.25, 1.0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]
    (interval,) = axes.lines
    assert list(interval.get_xdata()) == [0.1, 0.4]


def test_nothing_that_is_drawn_is_cut():
    bars = (Bar("a", 50, 9, 124), Bar("b", -3))
    (axes,) = bar_panels("Title", {"one": bars}, "score", (0, 100)).axes
    low, high = axes.get_xlim()
    assert low == -3 and high > 124


def test_pale_bars_are_pale_and_explained():
    figure = bar_panels("Title", {"one": (Bar("a", 0.25, is_pale=True), Bar("b", 0.5))}, "score", pale="fewer than 3")
    pale, full = (patch.get_facecolor() for patch in figure.axes[0].patches)
    assert sum(pale[:3]) > sum(full[:3]) and figure.get_supxlabel() == "Pale: fewer than 3"
    assert bar_panels("Title", {"one": (Bar("b", 0.5),)}, "score").get_supxlabel() == ""


def test_no_half_of_the_axis_is_empty():
    (axes,) = bar_panels("Title", {"one": (Bar("a", 0.1, 0.05, 0.17),)}, "score").axes
    assert 0.17 < axes.get_xlim()[1] < 0.25


def test_nothing_to_draw_is_an_empty_figure(tmp_path):
    assert [path.name for path in save(bar_panels("Title", {}, "score"), tmp_path / "plot")] == [
        "plot.png",
        "plot.svg",
        "plot.pdf",
    ]
