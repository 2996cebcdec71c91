"""Files of scores that people gave to answers: a CSV table, a workbook, or a JSON list, with the columns id and score.

``lmms-eval judge plan`` writes such files with an empty score and the probability with which each document was drawn.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec import Struct

from lmms_eval.errors import DataError
from lmms_eval.stats.labelled import Stratum
from lmms_eval.storage.atomic import read_json
from lmms_eval.tasks._task_utils.workbooks import workbook_library
from lmms_eval.utils.files import read_plain_text

ROUNDING = 0.01
"""How far the number of a stratum's documents, computed from the file, may be from a whole number."""


class Label(Struct, frozen=True):
    """A row of the file."""

    id: str
    position: int | None
    """Distinguishes documents of the same id; ``None`` if the file does not."""
    task: str
    """Empty if the file names none."""
    score: float | None
    """``None`` if nobody has scored the document yet."""
    stratum: str
    probability: float | None
    """Probability with which the document was drawn; ``None`` if the file does not state it."""
    where: str
    """File and row, for messages."""


def label_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Iterate over the rows of a file of scores, each with its place for messages.

    Raises:
        DataError: the file cannot be read, or is not a table.
        UsageError: the file is a workbook and openpyxl is not installed.
    """
    match path.suffix.lower():
        case ".csv":
            content: Any = _csv(path)
        case ".xlsx":
            content = _sheet(path)
        case _:
            content = read_json(path)
    if not isinstance(content, list):
        raise DataError(f"{path}: a list of scores is needed, not a {type(content).__name__}")
    for number, row in enumerate(content, 1):
        yield f"{path}, row {number}", row


def _csv(path: Path) -> list[dict[str, str]]:
    try:
        return list(csv.DictReader(io.StringIO(read_plain_text(path, "utf-8-sig"), newline="")))
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as CSV: {error}") from error


def _sheet(path: Path) -> list[dict[str, Any]]:
    library = workbook_library()
    try:
        with closing(library.load_workbook(path, read_only=True, data_only=True)) as book:
            names, *rows = [list(row) for row in book.worksheets[0].iter_rows(values_only=True)] or [[]]
    except Exception as error:  # openpyxl raises errors of zip, XML and cells as they come
        text = " ".join(str(error).split())
        raise DataError(f"{path} cannot be read as a workbook: {type(error).__name__}: {text:.300}") from error
    found = [dict(zip(map(str, names), row, strict=False)) for row in rows]
    return [row for row in found if any(value is not None for value in row.values())]


def read_labels(path: Path) -> list[Label]:
    """Read a file of scores.

    Raises:
        DataError: the file cannot be read or has no rows; a row has no id, or a score, position or probability that is
            not one; two rows are about one document; or only some rows have a probability.
    """
    found: list[Label] = []
    rows: dict[tuple[str, str, int | None], str] = {}
    for where, row in label_rows(path):
        if not isinstance(row, Mapping) or row.get("id") in (None, "") or "score" not in row:
            raise DataError(f"{where}: needs id and score; lmms-eval judge plan writes such a file")
        label = Label(
            id=_text(row["id"]),
            position=_position(row.get("position"), where),
            task=_text(row.get("task")),
            score=score_of(row["score"], where),
            stratum=_text(row.get("stratum")) or "1",
            probability=_probability(row.get("probability"), where),
            where=where,
        )
        key = label.task, label.id, label.position
        if key in rows:
            raise DataError(f"{where}: a second score of {label.id!r}, after {rows[key]}; keep one of the two")
        rows[key] = where
        found.append(label)
    if not found:
        raise DataError(f"{path}: no rows; lmms-eval judge plan writes such a file")
    if len({label.probability is None for label in found}) > 1:
        first = next(label for label in found if label.probability is None)
        raise DataError(f"{first.where}: no probability, which other rows have; keep the column as it was planned")
    return found


def score_of(value: Any, where: str) -> float | None:
    """Return the score of a cell; ``None`` if the cell is empty. Raises ``DataError`` if it is not a number."""
    if value is None or value == "":
        return None
    try:
        score = float(value)
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not math.isfinite(score):
        raise DataError(f"{where}: the score {value!r} is no number")
    return score


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else str(value)


def _position(value: Any, where: str) -> int | None:
    try:
        return None if value in (None, "") else int(_text(value))
    except ValueError:
        raise DataError(f"{where}: the position {value!r} is no whole number") from None


def _probability(value: Any, where: str) -> float | None:
    if value in (None, ""):
        return None
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = math.nan
    if not 0 < found <= 1:
        raise DataError(f"{where}: the probability {value!r} is no number above 0 and up to 1")
    return found


def drawn_strata(
    labels: Sequence[Label], keys: Sequence[Hashable], judge: Mapping[Hashable, float], scale: float = 1.0
) -> list[Stratum]:
    """Return the strata of labelled documents, with both scores of each document.

    Without probabilities the documents with a score count as one random sample of all. Drawn documents without a score
    count as missing at random within their stratum.

    Args:
        labels: the rows about one task.
        keys: the document of each row, as in ``judge``.
        judge: the judge's score of every judged document.
        scale: factor of people's scores.

    Raises:
        DataError: the file is not the whole plan of these documents, or a stratum has too few scores.
    """
    source = labels[0].where.rpartition(", row ")[0]
    members: dict[str, list[tuple[Label, Hashable]]] = {}
    is_planned = labels[0].probability is not None
    for label, key in zip(labels, keys, strict=True):
        if is_planned or label.score is not None:
            members.setdefault(label.stratum if is_planned else "", []).append((label, key))
    found, total = [], 0
    for name, rows in members.items():
        size = _size(rows[0][0], [label for label, _ in rows]) if is_planned else len(judge)
        both = [(judge[key], scale * label.score) for label, key in rows if label.score is not None and key in judge]
        if len(both) < min(2, size):
            of = f"stratum {name!r} has" if is_planned and len(members) > 1 else "the judged documents have"
            raise DataError(f"{source}: {of} {len(both)} human scores; at least {min(2, size)} are needed")
        total += size
        found.append(Stratum(size, tuple(score for score, _ in both), tuple(score for _, score in both)))
    if not found:
        raise DataError(f"{source}: no row has a score; fill the column score")
    if total != len(judge):
        raise DataError(
            f"{source}: drawn from {total} judged documents, but the run has {len(judge)}: keep all rows of the "
            "plan, or draw another one (lmms-eval judge plan)"
        )
    return found


def _size(first: Label, rows: Sequence[Label]) -> int:
    """Return the size of a stratum: the number of drawn documents divided by their probability."""
    odd = [row for row in rows if row.probability != first.probability]
    if odd or not first.probability:
        where = odd[0].where if odd else first.where
        raise DataError(f"{where}: a probability unlike that of the others in stratum {first.stratum!r}")
    size = len(rows) / first.probability
    if abs(size - round(size)) > ROUNDING:
        raise DataError(
            f"{first.where}: stratum {first.stratum!r} lacks rows of the plan; keep rows without a score too"
        )
    return round(size)
