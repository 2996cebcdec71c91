"""The printed summary, log, JSON and CSV of a ranking."""

from __future__ import annotations

import json
import math
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import asdict, astuple

from lmms_eval.stats.interval import Interval, NoInterval
from lmms_eval.tasks._task_utils.submissions import csv_text, write_whole
from lmms_eval.tasks.general_bench.facts import LANGUAGE
from lmms_eval.tasks.general_bench.levels.report import Entry, Ranked
from lmms_eval.tasks.general_bench.levels.sensitivity import LevelSensitivity
from lmms_eval.utils.names import sanitize_model_name
from lmms_eval.utils.numbers import two_decimals
from lmms_eval.utils.terminal import Column, markdown_table

Sensitivities = Mapping[int, LevelSensitivity]


def summary(ranked: Ranked, found: Sensitivities) -> str:
    """Return the printed blocks: modalities, language, levels, with two decimals."""
    scope = f", scope {ranked.scope}" if ranked.scope != "A" else ""
    lines = [f"General-Level of {ranked.model} (profile {ranked.profile}{scope})", "", _modalities(ranked), ""]
    if ranked.language:
        part = ranked.language
        lines.append(
            f"{LANGUAGE}: {part.support.supported} of T = {part.support.total} supported,"
            f" {part.support.wins} wins, {part.score:.2f} of 100 for level 5"
        )
    lines += ["", _levels(ranked, found), ""]
    highest = max(ranked.levels, default=5)
    bound = "" if highest == 5 else f" (this scope has levels up to {highest})"
    lines.append(f"level reached: {ranked.reached or 'none'}{bound}")
    remark = ", which count as 0" if ranked.missing else ""
    lines.append(f"tasks without a score: {len(ranked.missing)} of {sum(map(len, ranked.entries.values()))}{remark}")
    return "\n".join(lines)


def _modalities(ranked: Ranked) -> str:
    numbers = [number for number in ranked.levels if number < 5]
    rows = []
    for name, part in ranked.modalities.items():
        support = part.support
        counts = (str(part.comprehension_rows), str(part.generation_rows), f"{support.supported} of {support.total}")
        rows.append((name, *counts, str(support.wins), *(two_decimals(part.levels[number]) for number in numbers)))
    headings = ("modality", "M", "N", "supported", "wins", *(f"level {number}" for number in numbers))
    return table(headings, rows)


def _levels(ranked: Ranked, found: Sensitivities) -> str:
    rows = []
    for level, score in ranked.levels.items():
        one = found[level]
        if isinstance(one.interval, NoInterval):
            between = f"none ({one.interval.reason})"
        else:
            between = f"{two_decimals(one.interval.low)} to {two_decimals(one.interval.high)}"
        needed = "out of reach" if one.wins_needed is None else str(one.wins_needed)
        rows.append(
            (str(level), two_decimals(score), between, str(one.missing_rows), f"{one.if_at_specialist:.2f}", needed)
        )
    return table(("level", "score", "95% interval", "no score", "if these at specialist", "wins needed"), rows)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], texts: Container[str] = ()) -> str:
    """Lay out rows as a Markdown table. Columns are aligned to the right unless their heading is one of ``texts``."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(headings)
    return markdown_table(
        [Column(name, tuple(cells), name not in texts) for name, cells in zip(headings, columns, strict=True)]
    ).rstrip("\n")


def write(ranked: Ranked, found: Sensitivities, folder: Path) -> list[Path]:
    """Write log, JSON and CSV of the levels, and return their paths. Raises ``DataError`` if one cannot be written."""
    name = sanitize_model_name(ranked.model, full_path=True)
    contents = {
        folder / f"score_calculation_{name.lower()}.log": log(ranked, found),
        folder / f"{name}_levels.json": as_json(ranked, found),
        folder / f"{name}_levels.csv": as_csv(ranked),
    }
    for path, content in contents.items():
        write_whole(path, content, survives_power_loss=False)
    return list(contents)


def log(ranked: Ranked, found: Sensitivities) -> str:
    """Return the printed summary, each task's given and mapped score and its specialist's, and all remarks."""
    lines = [summary(ranked, found), ""]
    lines += [f"error: {problem}" for problem in ranked.problems]
    lines += [f"warning: {warning}" for warning in ranked.warnings]
    for name, entries in ranked.entries.items():
        lines += ["", f"{name}: score and specialist, as given -> from 0 to 100"]
        for entry in entries:
            given = "none" if entry.raw is None else f"{entry.raw:g} -> {entry.counted:.4f}"
            theirs = f"{entry.raw_specialist:g} -> {entry.specialist:.4f}"
            win = "; win" if entry.won else ""
            lines.append(f"  {entry.task} [{entry.metric}]: {given}; specialist {theirs}{win}")
    return "\n".join(lines) + "\n"


def numbers(ranked: Ranked, found: Sensitivities) -> dict[str, Any]:
    """Return the levels of the whole, of modalities and of language, with their inputs, as JSON."""
    language = ranked.language
    return {
        "levels": {f"level{number}": score for number, score in ranked.levels.items()},
        "level_reached": ranked.reached,
        "modalities": {
            name: {
                "M": part.comprehension_rows,
                "N": part.generation_rows,
                **asdict(part.support),
                **{f"level{number}": score for number, score in part.levels.items() if number in ranked.levels},
            }
            for name, part in ranked.modalities.items()
        },
        "language": None
        if language is None
        else {
            "T": language.support.total,
            "supported": language.support.supported,
            "wins": language.support.wins,
            "score": language.score,
        },
        "sensitivity": {
            f"level{number}": {
                **_ends(one.interval),
                "missing_rows": one.missing_rows,
                "if_at_specialist": one.if_at_specialist,
                "wins_needed": one.wins_needed,
                "modalities": {name: _ends(interval) for name, interval in one.modalities.items()},
            }
            for number, one in found.items()
        },
    }


def _ends(interval: Interval | NoInterval) -> dict[str, Any]:
    if isinstance(interval, NoInterval):
        return {"interval": None, "no_interval": interval.reason}
    return {"interval": [interval.low, interval.high], "no_interval": ""}


def as_json(ranked: Ranked, found: Sensitivities) -> str:
    """Return all values, unrounded, as JSON."""
    content: dict[str, Any] = {
        "model": ranked.model,
        "profile": ranked.profile,
        "scope": ranked.scope,
        **numbers(ranked, found),
        "missing": [{"sheet": entry.sheet, "task": entry.task} for entry in ranked.missing],
        "problems": list(ranked.problems),
        "warnings": list(ranked.warnings),
        "tasks": [_task(entry) for rows in ranked.entries.values() for entry in rows],
    }
    return json.dumps(content, ensure_ascii=False)  # indented, it takes ten times as long


def _task(entry: Entry) -> dict[str, Any]:
    # infinity marks a specialist without a score; JSON has none
    specialists = [value if math.isfinite(value) else None for value in (entry.raw_specialist, entry.specialist)]
    return {
        "sheet": entry.sheet,
        "task": entry.task,
        "metric": entry.metric,
        "value": entry.raw,
        "score": entry.score,
        "specialist_value": specialists[0],
        "specialist": specialists[1],
        "win": entry.won,
    }


def as_csv(ranked: Ranked) -> str:
    """Return a line for each modality, and one for the whole."""
    rows: list[tuple[object, ...]] = [("part", "supported", "total", "wins", *(f"level{n}" for n in ranked.levels))]
    for name, part in ranked.modalities.items():
        rows.append((name, *astuple(part.support), *(part.levels.get(number, "") for number in ranked.levels)))
    if ranked.language:
        rows.append((LANGUAGE, *astuple(ranked.language.support), *("" for _ in ranked.levels)))
    return csv_text([*rows, ("all", "", "", "", *ranked.levels.values())])
