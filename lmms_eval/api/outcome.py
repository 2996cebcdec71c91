"""How a sample ends, and the two marks by which a task says that a value is not there.

Every sample ends *scored*, *unscored* (a part that scoring needs is missing) or *failed* (the request was given
up, or scoring raised). Only *failed* counts against the error budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["scored", "unscored", "failed"]


@dataclass(frozen=True, slots=True)
class Unscored:
    """In place of a metric's value in what ``process_results`` returns: this sample cannot be evaluated here."""

    reason: str


@dataclass(frozen=True, slots=True)
class Withheld:
    """In place of an aggregate: the official total is not given, ``partial`` is what the present part gives."""

    partial: Any
    reason: str


class NotEvaluated(Exception):
    """Raised by scoring code when a judge, program, weights or data set is absent; the sample is *unscored*."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
