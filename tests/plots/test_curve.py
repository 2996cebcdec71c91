import pytest

pytest.importorskip("matplotlib")

from lmms_eval.plots.curve import Axis, Curve, Point, curve_panels
from lmms_eval.plots.figure import save

BANDED = Curve("a", (Point(2, 10, 5, 20), Point(4, 30, 25, 40)))
PLAIN = Curve("b", (Point(2, 1), Point(8, 2)), is_dashed=True)
X, Y = Axis("pictures", is_log=True, ticks=(2, 4, 8)), Axis("score", limits=(0, 100))


def test_curves_are_drawn_with_their_bands():
    figure = curve_panels("Title", {"one": (BANDED, PLAIN), "none": (Curve("c", ()),)}, X, Y)
    (axes,) = figure.axes
    assert axes.get_title(loc="left") == "one"
    first, second = axes.lines
    assert (list(first.get_xdata()), list(first.get_ydata())) == ([2, 4], [10, 30])
    assert (first.get_linestyle(), second.get_linestyle()) == ("-", "--")
    (band,) = axes.collections
    assert band.get_paths()[0].vertices[:, 1].min() == 5
    assert band.get_paths()[0].vertices[:, 1].max() == 40
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]


def test_a_single_point_has_a_bar_in_place_of_a_band():
    (axes,) = curve_panels("Title", {"one": (Curve("a", (Point(3, 50, 40, 60),)),)}, X, Y).axes
    assert not axes.collections
    assert list(axes.lines[1].get_ydata()) == [40, 60]


def test_a_point_without_an_interval_breaks_the_band_alone():
    points = (Point(2, 10, 5, 20), Point(4, 30, 25, 40), Point(6, 30), Point(8, 40, 35, 45))
    (axes,) = curve_panels("Title", {"one": (Curve("a", points),)}, X, Y).axes
    (band,) = axes.collections
    assert band.get_paths()[0].vertices[:, 1].max() == 40
    assert list(axes.lines[1].get_ydata()) == [35, 45]


def test_axes_are_as_told():
    (axes,) = curve_panels("Title", {"one": (BANDED,)}, Axis("x", (1, 10), True, (2, 4)), Y).axes
    assert (axes.get_xscale(), axes.get_xlim(), axes.get_ylim()) == ("log", (1, 10), (0, 100))
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2", "4"]


def test_regions_in_sight_are_named_and_bordered():
    regions = {"few": (-1, 5.5), "many": (5.5, float("inf")), "far": (100, 200)}
    (axes,) = curve_panels("Title", {"one": (BANDED,)}, Axis("x", (0, 10)), Y, regions).axes
    named = {text.get_text(): text.get_position()[0] for text in axes.texts}
    assert named == {"few": 2.75, "many": 7.75}
    assert [list(line.get_xdata()) for line in axes.lines[1:]] == [[5.5, 5.5]]


def test_the_same_numbers_give_the_same_files(tmp_path):
    for name in ("a", "b"):
        save(curve_panels("Title", {"one": (BANDED, PLAIN)}, X, Y), tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_nothing_to_draw_is_an_empty_figure():
    assert curve_panels("Title", {}, X, Y).axes == []
