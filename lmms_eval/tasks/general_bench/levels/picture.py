"""A picture of a model's ranking: a radar of its levels by modality, and the ladder of levels 2 to 5."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval.errors import DataError
from lmms_eval.plots.figure import INK, entitle, new_figure, save, shortened
from lmms_eval.plots.radar import Rung, draw_ladder, draw_radar
from lmms_eval.tasks.general_bench.levels.report import Ranked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MEANING = {
    2: "mean of comprehension and generation",
    3: "only tasks on which the specialist is reached",
    4: "reached in comprehension and in generation",
    5: "level 4 plus language bonus",
}
_LEAST_SPOKES = 3
_MODEL = 40


def draw(ranked: Ranked, path: Path, remark: str = "") -> list[Path]:
    """Write ``path`` (``.png``) and the same picture as ``.svg`` and ``.pdf`` next to it, and return the paths.

    Args:
        ranked: the levels.
        path: the picture's file.
        remark: what the title says about the levels, such as that the data are a demonstration.

    Raises:
        PlotUnavailable: matplotlib is not installed.
        DataError: a file cannot be written.
    """
    try:
        return save(figure(ranked, remark), path.with_suffix(""))
    except OSError as error:
        raise DataError(f"the picture {path} cannot be written: {error.strerror or error}") from error


def figure(ranked: Ranked, remark: str = "") -> Figure:
    """Draw the modalities on the left (a radar, or bars for fewer than three) and the ladder on the right.

    Raises ``PlotUnavailable`` if matplotlib is not installed.
    """
    made = new_figure(11.0, 5.6)
    title = f"General-Level: {shortened(ranked.model, _MODEL)} (profile {ranked.profile}, scope {ranked.scope})"
    wins = [f"{name} {one.support.wins} of {one.support.total}" for name, one in ranked.modalities.items()]
    if ranked.language is not None:
        support = ranked.language.support
        wins.append(f"language {support.wins} of {support.total} (L = {ranked.language.score:.2f})")
    entitle(made, title, f"Tasks on which the specialist is reached: {', '.join(wins)}", remark)
    is_radar = len(ranked.modalities) >= _LEAST_SPOKES
    grid = made.add_gridspec(1, 2, width_ratios=(1.15, 1))
    left, right = made.add_subplot(grid[0, 0], projection="polar" if is_radar else None), made.add_subplot(grid[0, 1])
    reports = ranked.modalities.values()
    polygons = {
        f"level {level}": [report.levels[level] for report in reports] for level in (2, 3, 4) if level in ranked.levels
    }
    if is_radar:
        spokes = []
        for name, report in ranked.modalities.items():  # with the exact values, which the drawing then omits
            exact = " / ".join(f"{value:.1f}" for level, value in report.levels.items() if level in ranked.levels)
            spokes.append(f"{name}\n{exact}")
        draw_radar(left, spokes, polygons)
        levels_shown = " / ".join(name.removeprefix("level ") for name in polygons)
        left.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3, fontsize=9, frameon=False, title_fontsize=8,
            title=f"numbers by modality: levels {levels_shown}",
        )  # fmt: skip
    else:
        bars = [
            Rung(f"{name}, {label}", values[place])
            for place, name in enumerate(ranked.modalities)
            for label, values in polygons.items()
        ]
        draw_ladder(left, bars, "score by modality")
    levels = sorted(ranked.levels.items())
    rungs = [Rung(f"Level {level}", score, _MEANING[level], level == ranked.reached) for level, score in levels]
    draw_ladder(right, rungs, "score" if ranked.reached is None else "score; dark: the level reached")
    reached = "none (no score above 0)" if ranked.reached is None else f"{ranked.reached}"
    right.set_title(f"Level reached: {reached}", fontsize=10, loc="left", color=INK)
    return made
