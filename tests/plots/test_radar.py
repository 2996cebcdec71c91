import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("matplotlib")

from lmms_eval.plots.figure import new_figure
from lmms_eval.plots.radar import Rung, draw_ladder, draw_radar, upper_limit
from tests.cases import for_each

SPOKES = ("a", "b\n1 / 2", "c", "d")


def radar(**polygons):
    axes = new_figure(4, 4).add_subplot(projection="polar")
    draw_radar(axes, SPOKES, polygons)
    return axes


def ladder(*rungs):
    axes = new_figure(4, 4).add_subplot()
    draw_ladder(axes, rungs, "score")
    return axes


def test_polygons_are_closed_and_begin_at_the_top():
    axes = radar(one=(1, 2, 3, 4), two=(4, 3, 2, 1))
    one, two = axes.lines
    assert list(one.get_ydata()) == [1, 2, 3, 4, 1]
    assert list(two.get_xdata()) == pytest.approx([0, math.pi / 2, math.pi, 3 * math.pi / 2, 0])
    assert (axes.get_theta_offset(), axes.get_theta_direction()) == (math.pi / 2, -1)
    assert axes.get_ylim() == (0, 5)
    assert [text.get_text() for text in axes.get_yticklabels()] == ["1.25", "2.5", "3.75", "5"]


def test_spokes_are_named_beside_the_circle():
    texts = {text.get_text(): text.get_horizontalalignment() for text in radar(x=(1, 1, 1, 1)).texts}
    assert texts == {"a": "center", SPOKES[1]: "left", "c": "center", "d": "right"}


def test_values_below_zero_are_drawn_in_the_middle():
    assert list(radar(x=(-25, 380, 1, 1)).lines[0].get_ydata()) == [0, 380, 1, 1, 0]


def test_rungs_are_bars_from_below_with_their_values():
    axes = ladder(Rung("Level 2", 51.689, "mean"), Rung("Level 3", 0.0, is_marked=True))
    assert [text.get_text() for text in axes.texts] == ["51.69", "mean", "0.00"]
    assert [patch.get_width() for patch in axes.patches] == [60, 51.689, 60, 0]
    assert list(axes.get_xticks()) == [0, 15, 30, 45, 60]
    lower, upper = axes.get_yticklabels()
    assert (lower.get_text(), lower.get_fontweight()) == ("Level 2", "normal")
    assert (upper.get_text(), upper.get_fontweight()) == ("Level 3", "bold")
    assert axes.patches[1].get_facecolor() != axes.patches[3].get_facecolor()


@given(st.lists(st.floats(-1e6, 1e6), max_size=5))
def test_the_limit_is_at_least_every_value(values):
    assert upper_limit(values) >= max([*values, 1])


@for_each(("values", "limit"), [([], 100), ([0, -3], 100), ([0.3], 1), ([51.7], 60), ([100], 100), ([501], 1000)])
def test_limits_are_round(values, limit):
    assert upper_limit(values) == limit
