"""The report of a whole run on MMIE: AVG and the categories on both scales, fields and subfields."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from loguru import logger

from lmms_eval.api.outcome import BenchmarkReport, TaskNumbers
from lmms_eval.errors import DataError
from lmms_eval.plots.bars import Bar, bar_panels
from lmms_eval.plots.figure import PlotUnavailable, save
from lmms_eval.stats.interval import NoInterval
from lmms_eval.storage.atomic import replacing
from lmms_eval.tasks._task_utils.missing import NumberBounds, bounds_dict, bounds_lines, documents, filled_mean
from lmms_eval.tasks._task_utils.submissions import csv_text
from lmms_eval.tasks.mmie.facts import CATEGORIES, QUESTIONS
from lmms_eval.tasks.mmie.scoring import SCORES
from lmms_eval.tasks.mmie.summary import OVERALL, CategoryRow, CategoryTable, percent, weighted_average
from lmms_eval.utils.terminal import Column, markdown_table

PARTS = ("mmie_sa", "mmie_pbl", "mmie_msr")
_COUNTS = ("n", "Unparsable", "Unscored", "Skipped")
NOTICE = "Scores of a judge; the token overlap that lmms-eval calls mmie is the task mmie_f1, another number."
FEW = 10
"""A bar of fewer samples is pale."""


def report(tasks: Mapping[str, TaskNumbers], stem: Path | None) -> BenchmarkReport | None:
    """Make a table for each set of the run: ``mmie`` (or its three categories joined), and the demonstration data.

    With ``stem``, CSV, JSON and a plot go to ``STEM_SET/``. Raises ``DataError`` if a file cannot be written.
    """
    texts: list[str] = []
    parts: dict[str, Any] = {}
    files: list[str] = []
    given = {name: numbers.details["mmie"] for name, numbers in tasks.items() if "mmie" in numbers.details}
    sets = {name: {name: part} for name, part in given.items() if name not in ("mmie", *PARTS)}
    whole = {"mmie": given["mmie"]} if "mmie" in given else {name: given[name] for name in PARTS if name in given}
    for name, members in {**({"mmie": whole} if whole else {}), **sets}.items():
        found = functools.reduce(
            lambda one, other: one + other, (CategoryTable.from_dict(part) for part in members.values())
        )
        content = _content(found, members, _gaps(found, members, tasks))
        bounds = _bounds(found, {member: tasks[member] for member in members})
        if bounds:
            content["missing"] = bounds_dict(bounds)
        title = f"MMIE ({name}), {content['metric']}"
        if content["gaps"]:
            title += f": no published number ({'; '.join(content['gaps'])})"
        remarks = [line for task, part in content["tasks"].items() for line in _remarks(task, part)]
        lines = [*remarks, *filter(None, [bounds_lines(bounds, 2)])]
        texts.append("\n".join([title, NOTICE, "", _table(found.categories), _table(found.fields), *lines]))
        parts[name] = content
        if stem is not None:
            model = next(tasks[member].model for member in members)
            heading = "MMIE, demonstration data" if name.endswith("demo") else "MMIE"
            heading = f"{heading}: {model}" if model else heading
            files += _write(stem.with_name(f"{stem.name}_{name}"), found, content, heading)
    if not texts:
        return None
    return BenchmarkReport("\n".join(texts), {"mmie_report": parts}, tuple(files))


def _gaps(found: CategoryTable, members: Mapping[str, Any], tasks: Mapping[str, TaskNumbers]) -> list[str]:
    """Return the reasons why these numbers are not comparable with the published ones, or an empty list."""
    gaps = [tasks[name].withheld for name in members if tasks[name].withheld]
    if not all(part["prompts"]["official"] for part in members.values()):
        gaps.append("judged with other texts than the benchmark's")
    if any(part["view"] != "official" for part in members.values()):
        gaps.append("the judge saw answers uncut (view: full_text)")
    seen = {tag: row.n for tag, row in found.categories.items() if tag in QUESTIONS}
    if seen != dict(QUESTIONS):
        total = sum(QUESTIONS.values())
        gaps.append(f"{found.categories[OVERALL].n} of {total} questions")
    return gaps


def _bounds(found: CategoryTable, members: Mapping[str, TaskNumbers]) -> dict[str, NumberBounds]:
    """Return the bounds of AVG and the categories, in percent; empty if every sample has a score.

    Samples without a readable reply of the judge are in the rows of their categories. Those that failed before are not,
    so that their category is known only if the task has no other.
    """
    failed = {name: sum(one.missing.values()) for name, one in members.items() if not one.withheld}
    of_category = {f"mmie_{tag.lower()}": tag for tag in CATEGORIES}
    unknown = sum(count for name, count in failed.items() if name not in of_category)
    more = {
        OVERALL: sum(failed.values()),
        **{of_category[name]: n for name, n in failed.items() if name in of_category},
    }
    bounds = {}
    for tag, row in found.categories.items():
        count = row.n - row.scored + more.get(tag, 0)
        if row.mean is None or not count + unknown:
            continue
        if unknown and tag != OVERALL:
            reason = f"the categories of {documents(unknown)} that failed are not known"
            bounds[tag] = NumberBounds(count + unknown, reason=reason)
        else:
            low, high = (percent(filled_mean(row.mean, row.scored, count, end)) for end in (SCORES.low, SCORES.high))
            bounds[tag] = NumberBounds(count, low, high)
    return bounds


def _content(found: CategoryTable, members: Mapping[str, Mapping[str, Any]], gaps: list[str]) -> dict[str, Any]:
    percents = {tag: row.mean for tag, row in found.categories.items() if tag in CATEGORIES and row.mean is not None}
    weighted = weighted_average(percents) if set(percents) == set(CATEGORIES) else None
    return {
        "metric": " and ".join(dict.fromkeys(part["metric"] for part in members.values())),
        "gaps": gaps,
        **found.as_dict(),
        "weighted_by_published_counts": weighted,
        "tasks": {
            name: {
                key: part[key]
                for key in ("prompts", "t2i", "notes", "sensitivity", "repeats", "calibration")
                if key in part
            }
            for name, part in members.items()
        },
    }


def _table(rows: Mapping[str, CategoryRow]) -> str:
    """Lay out means on both scales, the strict ones next to the official ones, with their counts."""
    columns = {
        "": [*rows],
        "Mean (0-6)": [_number(row.official, 3) for row in rows.values()],
        "Percent": [_number(percent(row.mean), 2) for row in rows.values()],
        "95 %": [_around(row) for row in rows.values()],
        "Strict (0-6)": [_number(row.strict, 3) for row in rows.values()],
        "Strict percent": [_number(percent(row.strict), 2) for row in rows.values()],
        "n": [str(row.scored) for row in rows.values()],
        "Unparsable": [str(row.unparsable) for row in rows.values()],
        "Unscored": [str(row.unscored) for row in rows.values()],
        "Skipped": [str(row.skipped) for row in rows.values()],
    }
    return markdown_table([Column(name, tuple(cells), is_text=name not in _COUNTS) for name, cells in columns.items()])


def _remarks(task: str, part: Mapping[str, Any]) -> Iterator[str]:
    """Yield remarks on facts that the table does not show."""
    notes = part["notes"]
    if notes["skipped_ids"]:
        ids = notes["skipped_ids"]
        yield f"{task}: skipped for their pictures: {', '.join(ids[:5])}{', ...' if len(ids) > 5 else ''}"
    for key, words in (
        ("cut_answers", "answers that the judge saw cut"),
        ("missing_images", "pictures that are not there"),
        ("undrawn_pictures", "pictures described and not drawn (--t2i)"),
    ):
        if notes[key]:
            yield f"{task}: {notes[key]} {words}"
    if "repeats" in part:
        repeats = part["repeats"]
        yield (
            f"{task}: {repeats['askings']} askings of {repeats['n']} samples: weighted kappa "
            f"{_number(repeats['weighted_kappa'], 3)}, alpha {_number(repeats['krippendorff_alpha'], 3)}, "
            f"all alike {repeats['all_alike']:.1%}"
        )
    if "calibration" in part:
        found, mean = part["calibration"], "too few for a corrected mean"
        if found["corrected"] is not None:
            ends = found["corrected"]["interval"]
            around = "" if ends is None else f" [{ends[0]:.3f}, {ends[1]:.3f}]"
            mean = f"mean corrected for bias {found['corrected']['mean']:.3f}{around}"
        yield (
            f"{task}: against {found['n']} human scores: Pearson {_number(found['pearson'], 3)}, cosine "
            f"{_number(found['cosine'], 3)}, MSE {_number(found['mse'], 3)}, MAE {_number(found['mae'], 3)}; {mean}"
        )


def _write(folder: Path, found: CategoryTable, content: Mapping[str, Any], heading: str) -> list[str]:
    """Write JSON, CSV and, if it can be drawn, the plot; return the paths of folder and plot.

    ``heading`` is the title of the plot.
    """
    names = [name for name in CategoryRow().as_dict() if name not in ("interval", "percent_interval", "sums")]
    lines: list[list[Any]] = [["kind", "name", *names, "low", "high"]]
    panels: dict[str, list[Bar]] = {}
    for kind, part, rows in (
        ("category", "Categories", found.categories), ("field", "Fields", found.fields),
        ("subfield", "Subfields", found.subfields),
    ):  # fmt: skip
        bars = []
        for name, row in rows.items():
            values = row.as_dict()
            lines.append([kind, name, *(values[key] for key in names), *(values["interval"] or ("", ""))])
            if row.mean is not None:
                low, high = (percent(end) for end in row.ends or (None, None))
                bars.append(Bar(f"{name} (n = {row.scored})", percent(row.mean) or 0.0, low, high, row.scored < FEW))
        if len(rows) > 1:
            panels[part] = bars
    texts = {"report.json": json.dumps(content, indent=2), "scores.csv": csv_text(lines)}
    try:
        for name, text in texts.items():
            with replacing(folder / name) as file:
                file.write(text.encode("utf-8", "replace"))
        axis = "mean score over n samples in percent, with 95 % interval"
        figure = bar_panels(heading, panels, axis, (0.0, 100.0), f"fewer than {FEW} samples")
        return [str(folder), *map(str, save(figure, folder / "scores"))]
    except PlotUnavailable as absent:
        logger.info("{}", absent)
        return [str(folder)]
    except OSError as error:
        raise DataError(f"the report of MMIE cannot be written to {folder}: {error.strerror or error}") from error


def _number(value: float | None, decimals: int) -> str:
    return "-" if value is None else f"{value:.{decimals}f}"


def _around(row: CategoryRow) -> str:
    found = row.interval
    if isinstance(found, NoInterval):
        return found.reason if row.scored else ""
    return f"[{_number(percent(found.low), 2)}, {_number(percent(found.high), 2)}]"
