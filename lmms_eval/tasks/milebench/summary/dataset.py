"""The summary of a data set for the benchmark's report: sums of its scores, by number of images.

A task's estimate holds ``DatasetSummary.as_dict()`` under ``details["milebench"]``; the report reads it with
``from_details``. All scores are fractions from 0 to 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct, ValidationError, convert, to_builtins

from lmms_eval.api.outcome import Estimate
from lmms_eval.errors import DataError
from lmms_eval.stats.interval import MeanSpread
from lmms_eval.tasks.milebench.scoring.model import LEVEL_RANGES
from lmms_eval.utils.numbers import SHARES

KEY = "milebench"
"""Key of the summary in an estimate's details."""


class Moments(Struct, frozen=True, array_like=True):
    """Sum, number and sum of squares of scores, which give their mean and its error, and can be added."""

    total: float = 0.0
    count: int = 0
    squares: float = 0.0

    @classmethod
    def of(cls, scores: Sequence[float]) -> Moments:
        return cls(math.fsum(scores), len(scores), math.fsum(score * score for score in scores))

    @classmethod
    def pooled(cls, parts: Iterable[Moments]) -> Moments:
        """Return the moments of all scores of the parts together."""
        found = list(parts)
        return cls(
            math.fsum(part.total for part in found),
            sum(part.count for part in found),
            math.fsum(part.squares for part in found),
        )

    @property
    def mean(self) -> float:
        """The mean; NaN without scores."""
        return self.total / self.count if self.count else math.nan

    @property
    def spread(self) -> MeanSpread:
        """The error of the mean of independent samples."""
        return MeanSpread.of_moments(self.count, self.total, self.squares, SHARES)


T = TypeVar("T")


class Pair(Struct, Generic[T], frozen=True):
    """The same of scores by the ``official`` and by the ``fixed`` rules."""

    official: T
    fixed: T


class NeedleCell(Struct, frozen=True):
    """Official scores of samples whose needle lies at one depth of a context of one length, in the data's units."""

    depth: float
    length: float
    official: Moments


class DatasetSummary(Struct, frozen=True, kw_only=True):
    """The scored samples of a data set."""

    dataset: str
    variant: str
    """Name of these data and prompts: ``adversarial``, ``demo``, ...; empty for the benchmark's usual ones."""
    metric: str
    """``Accuracy`` or ``Rouge-L f``."""
    no_answer: int
    """Number of empty answers."""
    by_images: dict[int, Pair[Moments]]
    """Scores by the annotation's number of images."""
    steps: dict[str, int]
    """Number of samples that each official rule decided."""
    fixed_steps: dict[str, int]
    sequence: Moments = Moments()
    """Scores by the word-sequence ROUGE-L; empty for other data sets."""
    needles: tuple[NeedleCell, ...] = ()
    """Needles; empty unless the data states depth and length of every one."""

    @property
    def count(self) -> int:
        """The number of scored samples."""
        return self.within().official.count

    def within(self, least: int = 0, most: float = math.inf) -> Pair[Moments]:
        """Return the moments of the samples with ``least`` to ``most`` images; by default of all."""
        found = [both for number, both in self.by_images.items() if least <= number <= most]
        official, fixed = ([getattr(both, side) for both in found] for side in ("official", "fixed"))
        return Pair(Moments.pooled(official), Moments.pooled(fixed))

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON. Triples are sum, number and sum of squares; ``levels`` are as in ``eval.json``."""
        plain: dict[str, Any] = to_builtins(self, str_keys=True)
        levels = {level: self.within(*ends).official for level, ends in LEVEL_RANGES.items()}
        for name, is_there in (("sequence", self.sequence.count), ("needles", self.needles)):
            if not is_there:
                del plain[name]
        return {
            **{name: plain.pop(name) for name in ("dataset", "variant", "metric")},
            "scored": self.count,
            "no_answer": plain.pop("no_answer"),
            **to_builtins(self.within()),
            "levels": {level: to_builtins(found)[:2] for level, found in levels.items()},
            **plain,
        }

    @classmethod
    def from_details(cls, given: Mapping[str, Any]) -> DatasetSummary:
        """Undo ``as_dict``, also after a way through JSON. Raises ``DataError`` if it is something else."""
        try:
            return convert(given, cls, str_keys=True)
        except ValidationError as error:
            raise DataError(f"no summary of a MileBench data set: {type(error).__name__}: {error}") from error


def summarise(values: Iterable[Mapping[str, Any]], dataset: str, variant: str = "") -> DatasetSummary:
    """Summarise the scored samples of a data set, at least one.

    Args:
        values: per sample ``score``, ``fixed``, ``metric``, ``n_images``, ``step``, ``fixed_step``, ``no_answer``, and
            if present ``sequence``, ``needle_depth``, ``needle_length``. For a sample with several
            answers the numbers are their means.
        variant: see ``DatasetSummary``.
    """
    found = list(values)
    scores: dict[int, list[Mapping[str, Any]]] = {}
    needles: dict[tuple[Any, Any], list[float]] = {}
    for value in found:
        scores.setdefault(round(value["n_images"]), []).append(value)
        needles.setdefault((value.get("needle_depth"), value.get("needle_length")), []).append(float(value["score"]))
    if any(None in place for place in needles):
        needles = {}
    return DatasetSummary(
        dataset=dataset,
        variant=variant,
        metric=str(found[0]["metric"]),
        no_answer=round(math.fsum(value["no_answer"] for value in found)),
        by_images={
            number: Pair(*(Moments.of([float(value[side]) for value in members]) for side in ("score", "fixed")))
            for number, members in sorted(scores.items())
        },
        steps=dict(sorted(Counter(str(value["step"]) for value in found).items())),
        fixed_steps=dict(sorted(Counter(str(value["fixed_step"]) for value in found).items())),
        sequence=Moments.of([float(value["sequence"]) for value in found if value.get("sequence") is not None]),
        needles=tuple(
            NeedleCell(float(depth), float(length), Moments.of(cell))
            for (depth, length), cell in sorted(needles.items())
        ),
    )


def estimate(values: Sequence[Mapping[str, Any]], dataset: str, variant: str = "") -> Estimate:
    """Return the mean official score (a fraction) with its error, and the summary in the details."""
    summary = summarise(values, dataset, variant)
    official = summary.within().official
    error = official.spread.error
    return Estimate(official.mean, None if math.isnan(error) else error, {KEY: summary.as_dict()})
