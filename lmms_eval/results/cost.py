"""Cost of a run in the results: what was asked, at the prices that the user gives."""

from __future__ import annotations

from typing import Any

from lmms_eval.engine.spending import RunSpending
from lmms_eval.utils.prices import Spending, Tariff, Tariffs


def cost_part(spent: RunSpending, tariffs: Tariffs) -> dict[str, Any]:
    """``usage.cost``: of all starts of the run, as far as their journals are here; hits of the cache cost nothing.

    ``None`` stands for a cost that is not known: the back end told no tokens, the table has no price, or it has one of
    media and some were not measured.
    """
    model, judge = _cost(tariffs.model, spent.model), _cost(tariffs.judge, spent.judge)
    part: dict[str, Any] = {
        "model": model,
        "judge": judge,
        "total": None if model is None or judge is None else model + judge,
        "currency": tariffs.model.currency,
        "price": tariffs.model.source,
    }
    return part | ({"judge_price": tariffs.judge.source} if tariffs.judge is not None else {})


def cost_lines(spent: RunSpending, tariffs: Tariffs | None) -> list[str]:
    """Say below the table what the run has cost; nothing without prices."""
    if tariffs is None:
        return []
    lines = _lines("cost", tariffs.model, spent.model)
    return lines + (_lines("cost of the judge", tariffs.judge, spent.judge) if spent.judge != Spending() else [])


def _lines(name: str, tariff: Tariff | None, spent: Spending) -> list[str]:
    tokens = f"{spent.input_tokens:,} tokens in and {spent.output_tokens:,} out"
    if tariff is None:
        return [f"{name}: price not known ({tokens})"]
    cost = _cost(tariff, spent)
    if cost is None:
        if spent.untold:
            return [f"{name}: not known, for {spent.untold:,} answers came without a count of their tokens"]
        return [f"{name}: not known, for {spent.unmeasured:,} sounds of unknown length or whole videos were sent"]
    return [f"{name}: {tariff.shown(cost)} for {tokens} (price: {tariff.source})"]


def _cost(tariff: Tariff | None, spent: Spending) -> float | None:
    """The cost; ``None`` where there is no price, tokens were not told, or media that have a price not measured."""
    if spent == Spending():
        return 0.0
    return None if tariff is None or spent.untold or not tariff.price.knows(spent) else tariff.cost(spent)
