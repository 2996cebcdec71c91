"""Metrics that people give: mean opinion scores, preferences, and E-Acc, which no source defines.

Their numbers come from a file of ratings (option ``ratings=FILE``): CSV with a head, a JSON list, or JSON lines, with
``task`` (as in the workbook or the data set), ``id`` of the item and ``rating``. Several rows of one item are several
raters. Opinions range from 1 to 5. A preference is 1 for the model's answer, 0 for the other, 0.5 for neither.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.facts import fold
from lmms_eval.tasks.general_bench.items import Form, Item
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure, State, mean
from lmms_eval.tasks.general_bench.measures.seen import media_of
from lmms_eval.tasks.general_bench.readers.sides import predicted_path, regular_file
from lmms_eval.tasks.general_bench.readers.sounds import predicted_notes

MAX_BYTES = 64 << 20
KEYS = ("task", "id", "rating")
_UNDEFINED = "the benchmark's sources name this metric (E-Acc) without defining it"


Rating = tuple[float, str]
"""Rating of one answer by one person, and its place in the file, for messages."""


Ratings = Mapping[str, Mapping[str, tuple[Rating, ...]]]
"""Ratings by folded task name and by the item's id as text."""


class Scale(Struct, frozen=True):
    """Range of a rating, and the factor that converts the mean to the unit of the result table."""

    metric: str
    low: float
    high: float
    factor: float
    what: str
    """What the raters do, for the message about missing ratings."""


OPINION = Scale("mos", 1, 5, 1, "people's opinions from 1 to 5")
PREFERENCE = Scale("user_preference", 0, 1, 100, "people's choices (1: this answer, 0: the other)")
UNDEFINED = Scale("e_accuracy", 0, 1, 100, "a judgement of each answer (1: right, 0: wrong)")


def read_ratings(path: Path) -> Ratings:
    """Read all ratings of a file.

    Raises:
        DataError: it cannot be read, or a row (which is named) lacks a key or has a rating that is not a number.
    """
    regular_file(path, MAX_BYTES)
    return _read_ratings(path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=2)
def _read_ratings(path: Path, changed: int) -> Ratings:  # noqa: ARG001 - a changed file is read again
    found: dict[str, dict[str, list[Rating]]] = {}
    for number, row in enumerate(_rows(path), start=1):
        where = f"{path}, rating {number}"
        if not isinstance(row, dict) or any(row.get(key) in (None, "") for key in KEYS):
            raise DataError(f"{where}: {row!r:.100} lacks one of {', '.join(KEYS)}")
        value = math.nan
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            value = float(row["rating"])
        if not math.isfinite(value):
            raise DataError(f"{where}: the rating {row['rating']!r:.40} is no number")
        items = found.setdefault(fold(str(row["task"])), {})
        items.setdefault(str(row["id"]).strip(), []).append((value, where))
    return MappingProxyType(
        {task: MappingProxyType({item: tuple(all_) for item, all_ in items.items()}) for task, items in found.items()}
    )


def _rows(path: Path) -> list[Any]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
        match path.suffix.lower():
            case ".csv":
                return list(csv.DictReader(io.StringIO(text), strict=True))
            case ".json":
                value = json.loads(text)
                if isinstance(value, list):
                    return value
                raise DataError(f"{path}: ratings must be a list of objects with {', '.join(KEYS)}")
            case ".jsonl":
                return [json.loads(line) for line in text.splitlines() if line.strip()]
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as ratings: {str(error)[:200]}") from error
    raise DataError(f"{path}: ratings are read from .csv, .json and .jsonl files")


def _state(scale: Scale) -> Callable[[Any, Item, Context], State]:
    def state(prediction: Any, item: Item, context: Context) -> State:
        if context.ratings is None:
            if scale is UNDEFINED:
                raise NotEvaluated(f"e_accuracy: {_UNDEFINED}; {scale.what} can be given: ratings=FILE")
            raise NotEvaluated(f"{scale.metric}: {scale.what} are needed: give ratings=FILE")
        if item.form == "notes":  # what people rated must be there
            predicted_notes(prediction, item)
        else:
            predicted_path(media_of(prediction), item)
        by_task = read_ratings(context.ratings)
        names = (item.facts.name, item.facts.short_name, item.folder.name)
        ratings = next((by_task[fold(name)] for name in names if fold(name) in by_task), None)
        if ratings is None:
            raise NotEvaluated(f"{scale.metric}: {context.ratings} has no ratings of the task {item.facts.name!r}")
        if str(item.id) not in ratings:
            raise NotEvaluated(f"{scale.metric}: {context.ratings} has no rating of item {item.id!r} ({names[0]})")
        given = ratings[str(item.id)]
        for value, row in given:
            if not scale.low <= value <= scale.high:
                raise DataError(f"{row}: {value:g} is no {scale.metric}: {scale.low:g} to {scale.high:g}")
        return scale.factor * math.fsum(value for value, _ in given) / len(given)

    return state


def _measure(scale: Scale, form: Form) -> Measure:
    return Measure(
        name=scale.metric,
        form=form,
        state=_state(scale),
        value=mean,
        is_mean=scale.low == 0,
        needs="a definition; else ratings" if scale is UNDEFINED else "people: a file of ratings (ratings=FILE)",
        checked="hand-computed means of files in all three forms",
    )


MEASURES: tuple[Measure, ...] = (
    _measure(OPINION, "audio"),
    _measure(PREFERENCE, "video"),
    _measure(UNDEFINED, "notes"),
)
