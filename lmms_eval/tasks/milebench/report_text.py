"""The report as text: tables for a terminal and rows for spreadsheets."""

from __future__ import annotations

from collections.abc import Sequence

from lmms_eval.stats.interval import NoInterval
from lmms_eval.tasks._task_utils.missing import bounds_lines
from lmms_eval.tasks._task_utils.submissions import csv_text
from lmms_eval.tasks.milebench.facts import datasets
from lmms_eval.tasks.milebench.scoring.model import ROUGE
from lmms_eval.tasks.milebench.summary.figures import Figure, FigureEntry
from lmms_eval.tasks.milebench.summary.image_counts import ALL, DIAGNOSTIC, REALISTIC, CountPool, NeedleGrid
from lmms_eval.tasks.milebench.summary.overview import Overview
from lmms_eval.utils.terminal import Column, markdown_table

METHOD = (
    "Scores in percent by the official and, next to them, the fixed rules; groups are unweighted means of data sets.\n"
    "CI95 over samples: samples within data sets; Wilson's, of means of data sets and of scores that are not right or\n"
    "wrong with the effective number of samples (docs/statistics.md)."
)
CONVENTIONS = (
    "Diagnostic is the mean of N-1, N-2 and I-1; the paper's rows of GPT-4V and GPT-4o print the mean of N-1 and N-2\n"
    "alone (here: Needles only)."
)
COMPOSITION = "Data sets differ from row to row: a difference between rows is not the number of pictures alone."
NO_GRID = "Needles: the annotations name no depth and length, so there is no grid of them (by pictures: images.csv)."
TERMINAL_SCOPES = (ALL, REALISTIC, DIAGNOSTIC)
_SHOWN_GAPS = 5


def title(overview: Overview) -> str:
    """Return the benchmark's name and, in brackets, the differences from the published setting."""
    marks = (
        overview.variant.replace("demo", "demonstration data").replace("_", " ").split("-") if overview.variant else []
    )
    marks += ["partial"] if overview.is_partial else []
    return "MileBench" + (f" ({', '.join(marks)})" if marks else "")


def report_text(overview: Overview) -> str:
    """Return all tables with their explanations."""
    parts = [f"{title(overview)}\n\n{score_table(overview)}{METHOD}\n{CONVENTIONS}"]
    if overview.is_partial:
        parts.append(_gap_lines(overview))
    if overview.bounds:
        parts.append(bounds_lines(overview.bounds, 2))
    parts.append(
        f"By number of pictures: levels\n\n{_pool_table(overview.levels, 'Level', TERMINAL_SCOPES)}{COMPOSITION}"
    )
    parts.append(
        f"By number of pictures: all data sets\n\n{_pool_table(overview.curve, 'Pictures', (ALL,))}".rstrip("\n")
    )
    labels = {datasets()[name].label for name in overview.datasets}
    if overview.grids:
        parts += [_grid_table(grid).rstrip("\n") for grid in overview.grids]
    elif labels & {"N-1", "N-2"}:
        parts.append(NO_GRID)
    samples = sum(summary.count for summary in overview.summaries.values())
    counts = [
        f"Empty answers: {overview.no_answer} of {samples}; to a choice question one is C officially, wrong if fixed."
    ]
    for name, is_fixed in (("official", False), ("fixed", True)):
        steps = ", ".join(f"{step or 'none'} {count}" for step, count in overview.steps(is_fixed).items())
        counts.append(f"Samples by the {name} rule that decided: {steps}")
    return "\n\n".join([*parts, "\n".join(counts)])


def score_table(overview: Overview) -> str:
    """Return overall figures, then every group with its data sets."""
    rows = [(entry.name, entry) for entry in overview.overall if entry.scores is not None]
    for label, group in overview.groups.items():
        rows.append((f"{label} {group.title}", group))
        rows += [
            (f"- {entry.name}", entry) for name, entry in overview.datasets.items() if datasets()[name].label == label
        ]
    summaries = overview.summaries
    parts, empty = [], []
    for name, entry in rows:
        summary = summaries.get(entry.name)
        unit = " (ROUGE-L)" if summary is not None and summary.metric == ROUGE else ""
        parts.append(f"{name}{unit}{' *' if entry.gaps else ''}")
        known = summaries.get(name.removeprefix("- ")) if name.removeprefix("- ") in overview.datasets else None
        empty.append("" if known is None else str(known.no_answer))
    official, fixed = ([_sides(entry)[side] for _, entry in rows] for side in (0, 1))
    return markdown_table(
        [
            Column("Part", tuple(parts), is_text=True),
            Column("Samples", tuple(f"{entry.samples}" for _, entry in rows)),
            Column("Official", tuple(map(_value, official))),
            Column("CI95 over samples", tuple(map(_range, official)), is_text=True),
            Column("Fixed", tuple(map(_value, fixed))),
            Column("CI95 over samples", tuple(map(_range, fixed)), is_text=True),
            Column("Empty", tuple(empty)),
        ]
    )


def _sides(entry: FigureEntry) -> tuple[Figure | None, Figure | None]:
    return (None, None) if entry.scores is None else (entry.scores.official, entry.scores.fixed)


def _value(figure: Figure | None) -> str:
    return "N/A" if figure is None else f"{figure.value:.1f}"


def _range(figure: Figure | None) -> str:
    if figure is None:
        return ""
    found = figure.interval
    return found.reason if isinstance(found, NoInterval) else f"[{found.low:.1f}, {found.high:.1f}]"


def _gap_lines(overview: Overview) -> str:
    by_reason: dict[str, list[str]] = {}
    for gap in dict.fromkeys(gap for entry in overview.overall for gap in entry.gaps):
        name, _, reason = gap.partition(": ")
        by_reason.setdefault(reason, []).append(name)
    lines = ["* not the benchmark's numbers but means over what is there:"]
    for reason, names in by_reason.items():
        more = f" and {len(names) - _SHOWN_GAPS} more" if len(names) > _SHOWN_GAPS else ""
        lines.append(f"  {reason}: {', '.join(names[:_SHOWN_GAPS])}{more}")
    return "\n".join(lines)


def _pool_table(pools: Sequence[CountPool], heading: str, scopes: Sequence[str]) -> str:
    rows = [pool for pool in pools if pool.scope in scopes]
    columns = [
        Column("Data sets", tuple(f"{pool.scope} ({pool.datasets})" for pool in rows), is_text=True),
        Column(heading, tuple(pool.label for pool in rows), is_text=True),
        Column("Samples", tuple(str(pool.samples) for pool in rows)),
    ]
    for name, pairs in (
        ("By sample", [pool.by_sample for pool in rows]),
        ("By data set", [pool.by_dataset for pool in rows]),
    ):
        columns += [
            Column(name, tuple(_value(pair.official) for pair in pairs)),
            Column("CI95 over samples", tuple(_range(pair.official) for pair in pairs), is_text=True),
            Column("Fixed", tuple(_value(pair.fixed) for pair in pairs)),
        ]
    return markdown_table(columns)


def _grid_table(grid: NeedleGrid) -> str:
    columns = [Column("Depth", grid.depths, is_text=True)]
    for place, length in enumerate(grid.lengths):
        cells = tuple("" if row[place] is None else f"{row[place]:.1f}" for row in grid.cells)
        columns.append(Column(length, cells))
    heading = f"{grid.dataset}: official score by depth (rows) and length (columns) of the needle"
    return f"{heading}\n\n{markdown_table(columns)}"


def scores_csv(overview: Overview) -> str:
    """Return a row for each overall figure, group and data set, in percent with two decimals as in ``result.csv``."""
    header = ("kind", "name", "title", "metric", "samples", "published_samples", "official", "official_low",
              "official_high", "fixed", "fixed_low", "fixed_high", "no_answer", "is_partial")  # fmt: skip
    rows: list[Sequence[str | int]] = [header]
    for kind, entries in (
        ("overall", {entry.name: entry for entry in overview.overall}),
        ("group", overview.groups),
        ("dataset", overview.datasets),
    ):
        for name, entry in entries.items():
            summary = overview.summaries.get(name)
            rows.append(
                [
                    kind, name, entry.title, "" if summary is None else summary.metric, entry.samples, entry.published,
                    *(cell for side in _sides(entry) for cell in _cells(side)),
                    "" if summary is None else summary.no_answer, "yes" if entry.gaps else "no",
                ]
            )  # fmt: skip
    return csv_text(rows)


def _cells(figure: Figure | None) -> list[str]:
    numbers = (None,) * 3 if figure is None else (figure.value, *figure.ends)
    return ["" if number is None else f"{number:.2f}" for number in numbers]


def images_csv(overview: Overview) -> str:
    """Return a row for each scope and level, and for each scope and point of the curve."""
    rows: list[Sequence[str | int]] = [
        ("kind", "scope", "images", "mean_images", "samples", "datasets", *_names("by_sample"), *_names("by_dataset"))
    ]
    for kind, pools in (("level", overview.levels), ("images", overview.curve)):
        rows += [
            [
                kind, pool.scope, pool.label, f"{pool.images:.2f}", pool.samples, pool.datasets,
                *_cells(pool.by_sample.official), *_cells(pool.by_sample.fixed),
                *_cells(pool.by_dataset.official), *_cells(pool.by_dataset.fixed),
            ]
            for pool in pools
        ]  # fmt: skip
    return csv_text(rows)


def _names(pooling: str) -> list[str]:
    return [f"{pooling}_{rules}{limit}" for rules in ("official", "fixed") for limit in ("", "_low", "_high")]
