"""Choices of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lmms_eval.errors import UsageError


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """Selection of what is compared, and the rules.

    Raises:
        UsageError: a number is out of its range.
    """

    alpha: float = 0.05
    margin: float | None = None
    """Differences below it do not matter, in the units of the scores."""
    draws: int = 10_000
    seed: int = 0
    tasks: tuple[str, ...] = ()
    """Empty: all that two runs have in common."""
    metrics: Mapping[str, str] = field(default_factory=dict)
    """Metrics, and what runs call them that do not have them by this name; empty: all in common."""
    task_names: Mapping[str, str] = field(default_factory=dict)
    """Tasks that runs call otherwise, by their name in the comparison."""
    by: tuple[str, ...] = ()
    """Metadata columns."""
    reference: str = ""
    """Name or source of the run with which all others are compared; empty: all pairs."""

    def __post_init__(self) -> None:
        complaints = {
            f"--alpha {self.alpha:g}: give a probability between 0 and 1, such as 0.05": 0 < self.alpha < 1,
            f"--margin {self.margin}: give a difference above 0, in the units of the scores (0.01: one percent point)":
                self.margin is None or 0 < self.margin < float("inf"),
            f"--draws {self.draws}: give at least 100": self.draws >= 100,
            f"--seed {self.seed}: give a number of at least 0": self.seed >= 0,
        }  # fmt: skip
        for complaint, is_fine in complaints.items():
            if not is_fine:
                raise UsageError(complaint)
