"""Toy measures and outcomes for tests of scoring and of the summary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import structs

from lmms_eval.tasks.general_bench.facts import TaskFacts, tasks
from lmms_eval.tasks.general_bench.items import Item, UnreadableAnswer
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure, mean
from lmms_eval.tasks.general_bench.scoring import ItemOutcome


def facts_of(metric: str, paradigm: str | None = None) -> TaskFacts:
    return next(one for one in tasks() if one.metric == metric and paradigm in (None, one.paradigm))


ACCURACY, ERROR, NOISE = facts_of("accuracy"), facts_of("mae"), facts_of("psnr")


def item(reference: Any = "gold", facts: TaskFacts = ACCURACY) -> Item:
    return Item(1, facts, "text", "", (), reference, Path("nowhere"), Path("nowhere"), {})


def measure(**over: Any) -> Measure:
    """100 for the reference, else 0; numbers are their own state."""

    def state(prediction: Any, one: Item, _context: Context) -> Any:
        if not isinstance(prediction, str | int | float):
            raise UnreadableAnswer(f"{prediction!r} is no text")
        return prediction if not isinstance(prediction, str) else 100.0 * (prediction == one.reference)

    return structs.replace(Measure("own", "text", state, mean), **over)


MEAN = measure(is_mean=True)
MISSED = measure(unanswered=lambda _item, _context: 10.0, value=lambda states: max(states))
BARE = measure()


def answered(*states: Any) -> list[ItemOutcome]:
    return [ItemOutcome(number, "answered", state) for number, state in enumerate(states)]


def unanswered(state: Any = None, note: str = "no prediction") -> ItemOutcome:
    return ItemOutcome("u", "unanswered", state, note)


def raises(error: BaseException) -> Any:
    def raiser(*_: object) -> Any:
        raise error

    return raiser
