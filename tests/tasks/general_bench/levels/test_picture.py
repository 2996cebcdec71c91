import itertools
from dataclasses import replace

import pytest

pytest.importorskip("matplotlib")

from matplotlib.backends.backend_agg import FigureCanvasAgg

from lmms_eval.tasks.general_bench.facts import tasks
from lmms_eval.tasks.general_bench.levels.paper import find_scope, rank_paper
from lmms_eval.tasks.general_bench.levels.picture import draw, figure
from lmms_eval.tasks.general_bench.levels.reference import rank_reference
from tests.cases import for_each
from tests.tasks.general_bench.levels.kit import specialists_scores, table_of

FULL = table_of(specialists_scores())
NONE = table_of({})


def texts(made):
    return [text.get_text() for axes in made.axes for text in axes.texts]


def overlaps(made):
    """Pairs of texts that cover each other when drawn."""
    FigureCanvasAgg(made).draw()
    found = [text for axes in made.axes for text in (*axes.texts, *axes.get_yticklabels(), axes.title)]
    found += [text for axes in made.axes if axes.get_legend() for text in axes.get_legend().get_texts()]
    found += [made._suptitle, made._supxlabel]
    boxes = [(text.get_text(), text.get_window_extent()) for text in found if text.get_text() and text.get_visible()]
    return [(one, other) for (one, a), (other, b) in itertools.combinations(boxes, 2) if a.overlaps(b)]


def test_a_full_table_has_a_radar_and_four_rungs():
    ranked = rank_paper("m", FULL)
    made = figure(ranked)
    radar, ladder = made.axes
    assert radar.name == "polar"
    assert [line.get_label() for line in radar.lines] == ["level 2", "level 3", "level 4"]
    assert list(radar.lines[0].get_ydata())[:4] == [one.levels[2] for one in ranked.modalities.values()]
    assert [text.get_text().split("\n")[0] for text in radar.texts] == ["Image", "Video", "Audio", "3D"]
    assert [text.get_text() for text in ladder.texts][::2] == [f"{ranked.levels[level]:.2f}" for level in (2, 3, 4, 5)]
    assert ladder.get_title(loc="left") == "Level reached: 5"
    assert "language 115 of 115" in made.get_supxlabel()
    assert "profile paper, scope A" in made.get_suptitle()


def test_the_reached_level_is_marked():
    some = {task.name: task.sound_specialist for task in tasks() if task.sheet == "Image-Comprehension"}
    ladder = figure(rank_paper("m", table_of(some))).axes[1]
    assert [text.get_text() for text in ladder.get_yticklabels() if text.get_fontweight() == "bold"] == ["Level 3"]
    assert ladder.get_title(loc="left") == "Level reached: 3"


def test_an_empty_table_reaches_nothing():
    ladder = figure(rank_paper("m", NONE)).axes[1]
    assert ladder.get_title(loc="left") == "Level reached: none (no score above 0)"
    assert not [text for text in ladder.get_yticklabels() if text.get_fontweight() == "bold"]


def test_fewer_than_three_modalities_have_bars():
    made = figure(rank_paper("m", FULL, find_scope("B:Image+Audio")))
    labels = [text.get_text() for text in made.axes[0].get_yticklabels()]
    assert labels == [f"{name}, level {level}" for name in ("Image", "Audio") for level in (2, 3, 4)]
    made = figure(rank_paper("m", FULL, find_scope("C:3D-Generation")))
    assert [text.get_text() for text in made.axes[0].get_yticklabels()] == ["3D, level 2", "3D, level 3"]
    assert "language" not in made.get_supxlabel()


@for_each("table", [FULL, NONE])
@for_each("scope", ["A", "B:Image+Video+Audio", "B:Image+Audio", "C:3D-Generation"])
def test_no_text_covers_another(table, scope):
    ranked = replace(rank_paper("m", table, find_scope(scope)), model="a model with a rather long name, as they are")
    assert overlaps(figure(ranked)) == []


def test_values_of_the_reference_profile_may_be_anything():
    word_errors = {task.name: task.specialist for task in tasks() if task.metric == "wer"}  # percent: far below 0
    ranked = rank_reference("m", table_of({**specialists_scores(), **word_errors}))
    made = figure(ranked)
    assert ranked.modalities["Audio"].levels[2] < 0
    assert f"Audio\n{ranked.modalities['Audio'].levels[2]:.1f} / " in "".join(texts(made))
    assert overlaps(made) == []


def test_a_demonstration_says_so():
    made = figure(rank_paper("m", FULL), "demonstration data")
    assert made.get_suptitle().splitlines() == ["General-Level: m (profile paper, scope A)", "demonstration data"]
    assert overlaps(made) == []


def test_both_files_are_written_the_same_each_time(tmp_path):
    ranked = replace(rank_paper("m", FULL), model="Qwen2.5-7B $x$ $")  # no formula
    for name in ("Qwen2.5-7B_a", "Qwen2.5-7B_b"):
        found = draw(ranked, tmp_path / f"{name}.png")
        assert [path.name for path in found] == [f"{name}.png", f"{name}.svg", f"{name}.pdf"]
    one, other = sorted(tmp_path.glob("*.png"))
    assert one.read_bytes() == other.read_bytes()
    assert "Qwen2.5-7B $x$ $" in figure(ranked).get_suptitle()
