"""Items of MMBench from their rows, each with another order of the options: right if every row is right."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgspec import Struct

from lmms_eval.api.outcome import Estimate
from lmms_eval.metrics.answers import extract_mcq_answer
from lmms_eval.tasks._task_utils import estimates
from lmms_eval.tasks.mmbench.letters import LETTERS, find_letter, options_of

Row = Mapping[str, Any]
NO_JUDGE, NO_LETTER = "no judge", "no letter"
"""In a row's ``judged``: nobody was asked; the judge gave no reply, or none with a letter."""
_COPY = 1_000_000
_SEED = 2680
"""Of the letters that the authors' scoring draws."""


class CircularQuestion(Struct, frozen=True):
    """A question with all its rows."""

    row: Row
    """The first one."""
    is_right: bool
    is_drawn: bool = False
    """A drawn letter took part in the decision."""
    needs_judge: bool = False
    """Without a judge it is open whether it is right."""


def official(rows: Sequence[Row]) -> Estimate:
    """Share of right items, in percent; letters are drawn as the authors' scoring does where a judge finds none."""
    items = list(_decided(rows))
    closed = [item for item in items if not item.needs_judge]
    drawn = [item for item in closed if item.is_drawn]
    made = _estimate(closed)
    notes = list(made.notes)
    if drawn:
        beside = _estimate([item for item in closed if not item.is_drawn])
        notes.append(
            f"drawn_items: {len(drawn)} of {len(closed)} items are decided by a letter drawn at random; without them "
            f"the score is {beside.value}"
        )
    return replace(made, notes=(*notes, *_open(items)))


def fixed(rows: Sequence[Row]) -> Estimate:
    """Share of right items among those that no drawn letter decides, in percent; the others count as failed."""
    items = list(_decided(rows))
    closed = [item for item in items if not item.needs_judge]
    kept = [item for item in closed if not item.is_drawn]
    lost = len(closed) - len(kept)
    notes = [f"failed: {lost} of {len(closed)} items have an answer whose letter the judge does not give; left out"]
    return replace(_estimate(kept), details={}, sub_scores={}, notes=(*(notes if lost else ()), *_open(items)))


def static(rows: Sequence[Row]) -> Estimate:
    """Share of right items, in percent, without a judge: an answer without a letter by its words or by the text of an
    option has the one that looks most like it."""
    return _estimate([CircularQuestion(group[0], all(map(_is_right_by_letter, group))) for group in _groups(rows)])


def _is_right_by_letter(row: Row) -> bool:
    options = options_of(row)
    letter = find_letter(row["prediction"], options) or extract_mcq_answer(row["prediction"], list(options))
    return bool(letter == row["answer"])


def _open(items: Sequence[CircularQuestion]) -> Iterator[str]:
    count = sum(item.needs_judge for item in items)
    if count:
        yield f"unscored: {count} of {len(items)} items need a judge (--judge_model) and are left out"


def _groups(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield the rows of each item in the order of their indices; rows without a first one are no item."""
    groups: dict[int, list[Row]] = {}
    for row in sorted(rows, key=lambda row: int(row["index"])):
        groups.setdefault(int(row["index"]) % _COPY, []).append(row)
    return (group for _, group in sorted(groups.items()) if int(group[0]["index"]) < _COPY)


def _decided(rows: Sequence[Row]) -> Iterator[CircularQuestion]:
    generator = random.Random(_SEED)
    return (_decide(group, lambda: LETTERS[generator.randint(0, len(LETTERS) - 1)]) for group in _groups(rows))


def _decide(rows: Sequence[Row], draw: Callable[[], str]) -> CircularQuestion:
    """Decide an item: a wrong letter settles it; else what the judge says of the rest, up to the first wrong one."""
    letters = [find_letter(row["prediction"], options_of(row)) for row in rows]
    if any(letter not in (None, row["answer"]) for row, letter in zip(rows, letters, strict=True)):
        return CircularQuestion(rows[0], False)
    is_drawn = False
    for row in (row for row, letter in zip(rows, letters, strict=True) if letter is None):
        judged = row.get("judged", NO_JUDGE)
        if judged == NO_JUDGE:
            return CircularQuestion(rows[0], False, is_drawn, True)
        if judged == NO_LETTER:
            is_drawn = True
            judged = draw()
        if judged != row["answer"]:
            return CircularQuestion(rows[0], False, is_drawn)
    return CircularQuestion(rows[0], True, is_drawn)


def _estimate(items: Sequence[CircularQuestion]) -> Estimate:
    """Share of right items, by category and by group of categories; the benchmark's own table holds fractions."""
    parts = {
        name: estimates.by([{**item.row, "is_right": item.is_right} for item in items], column, _score, 100)
        for name, column in (("category", "category"), ("l2_category", "L2-category"))
        if items and column in items[0].row
    }
    made = estimates.mean([float(item.is_right) for item in items], 100, parts)
    if made.value is None:
        return made
    table = {"overall_acc": made.value / 100} | {
        f"{name}_acc": {part: score.value / 100 for part, score in scores.items()} for name, scores in parts.items()
    }
    return replace(made, details={"mmbench": table})


def _score(row: Row) -> float:
    return float(row["is_right"])
