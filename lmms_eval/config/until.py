"""``--until``: the rules by which a run ends before all documents are asked, as they are written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from lmms_eval.errors import ConfigError

FORMS = (
    "write halfwidth<=0.01 (or 1%), decided:NUMBER, decided:BASELINE, or one of them after the name of a task or group "
    "and a colon"
)
_HALFWIDTH, _DECIDED = "halfwidth<=", "decided:"


@dataclass(frozen=True, slots=True)
class Bound:
    """A number in the units of a score, or a share of its range."""

    number: float
    is_share: bool = False


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """A statement about a score that ends the asking where it holds."""

    text: str
    """As it was written, without the target."""
    kind: Literal["halfwidth", "decided"]
    bound: Bound | None = None
    """The greatest half-width, or the number to be told from."""
    baseline: str = ""
    """``--baseline`` to be told from, where that is not a number."""
    target: str = ""
    """Task or group; empty: every task that no other rule names."""


def stopping_rules(text: str) -> tuple[StoppingRule, ...]:
    """Read ``[TARGET:] RULE; ...``; an empty text has none.

    Raises:
        ConfigError: a part is no rule, or a target has two.
    """
    rules = tuple(_rule(part.strip()) for part in text.split(";")) if text.strip() else ()
    targets = [rule.target for rule in rules]
    for target in targets:
        if targets.count(target) > 1:
            named = f"{target!r} has" if target else "every task has"
            raise ConfigError(f"until: {named} {targets.count(target)} rules; give each task and group one")
    return rules


def _rule(text: str) -> StoppingRule:
    target, plain = "", text
    if not _is_statement(text):
        target, _, plain = (part.strip() for part in text.partition(":"))
    statement = "".join(plain.split()) if plain.startswith("halfwidth") else plain
    if text and not target and statement == text.partition(":")[2].strip():
        raise ConfigError(f"until: {text!r} names no task or group before the colon; {FORMS}")
    if statement.startswith(_HALFWIDTH):
        bound = _bound(statement.removeprefix(_HALFWIDTH))
        if bound is None or not bound.number > 0:
            raise ConfigError(f"until: {text!r}: the half-width is a number above 0; {FORMS}")
        return StoppingRule(statement, "halfwidth", bound, target=target)
    value = statement.removeprefix(_DECIDED).strip()
    if not statement.startswith(_DECIDED) or not value:
        raise ConfigError(f"until: {text!r} is no rule; {FORMS}")
    bound = _bound(value)
    return StoppingRule(statement, "decided", bound, "" if bound is not None else value, target)


def _is_statement(text: str) -> bool:
    return text.startswith(_DECIDED) or "".join(text.split()).startswith("halfwidth<")


def _bound(text: str) -> Bound | None:
    """Read ``0.01`` or ``1%``; ``None`` for anything else."""
    is_share = text.endswith("%")
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    return Bound(number / 100 if is_share else number, is_share)
