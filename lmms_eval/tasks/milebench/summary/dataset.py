"""The summary of a data set for the benchmark's report: sums of its scores, by number of images.

A task's estimate holds ``DatasetSummary.as_dict()`` under ``details["milebench"]``; the report reads it with
``from_details``. All scores are fractions from 0 to 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from lmms_eval.api.outcome import Estimate
from lmms_eval.errors import DataError
from lmms_eval.stats.interval import MeanSpread
from lmms_eval.tasks.milebench.scoring.model import LEVELS, Level, image_level
from lmms_eval.utils.numbers import SHARES

KEY = "milebench"
"""Key of the summary in an estimate's details."""


class Moments(Struct, frozen=True):
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

    def as_list(self) -> list[float]:
        return [self.total, self.count, self.squares]

    @classmethod
    def from_list(cls, given: Sequence[float]) -> Moments:
        """Raise ``TypeError`` or ``ValueError`` for anything but three numbers."""
        total, count, squares = given
        return cls(float(total), int(count), float(squares))


class NeedleCell(Struct, frozen=True):
    """Official scores of samples whose needle lies at one depth of a context of one length, in the data's units."""

    depth: float
    length: float
    official: Moments


class DatasetSummary(Struct, frozen=True):
    """The scored samples of a data set."""

    dataset: str
    metric: str
    """``Accuracy`` or ``Rouge-L f``."""
    official: Mapping[int, Moments]
    """Official scores by the annotation's number of images."""
    fixed: Mapping[int, Moments]
    """Scores of the same samples by the ``fixed`` rules."""
    variant: str = ""
    """Name of these data and prompts: ``adversarial``, ``demo``, ...; empty for the benchmark's usual ones."""
    sequence: Moments = Moments()
    """Scores by the word-sequence ROUGE-L; empty for other data sets."""
    no_answer: int = 0
    """Number of empty answers."""
    steps: Mapping[str, int] = field(default_factory=dict)
    """Number of samples that each official rule decided."""
    fixed_steps: Mapping[str, int] = field(default_factory=dict)
    needles: tuple[NeedleCell, ...] = ()
    """Needles; empty unless the data states depth and length of every one."""

    @property
    def count(self) -> int:
        """The number of scored samples."""
        return sum(moments.count for moments in self.official.values())

    def side(self, is_fixed: bool) -> Mapping[int, Moments]:
        return self.fixed if is_fixed else self.official

    def pooled(self, is_fixed: bool = False) -> Moments:
        """Return the official or fixed moments of all samples."""
        return Moments.pooled(self.side(is_fixed).values())

    def level(self, level: Level, is_fixed: bool = False) -> Moments:
        """Return the moments of the samples of an image level."""
        return Moments.pooled(found for number, found in self.side(is_fixed).items() if image_level(number) == level)

    def within(self, least: int, most: float, is_fixed: bool = False) -> Moments:
        """Return the moments of the samples with ``least`` to ``most`` images."""
        return Moments.pooled(found for number, found in self.side(is_fixed).items() if least <= number <= most)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON. Triples are sum, number and sum of squares; ``levels`` are as in ``eval.json``."""
        content: dict[str, Any] = {
            "dataset": self.dataset,
            "variant": self.variant,
            "metric": self.metric,
            "scored": self.count,
            "no_answer": self.no_answer,
            "official": self.pooled().as_list(),
            "fixed": self.pooled(is_fixed=True).as_list(),
            "levels": {level: self.level(level).as_list()[:2] for level in LEVELS},
            "by_images": {
                str(number): {"official": moments.as_list(), "fixed": self.fixed[number].as_list()}
                for number, moments in sorted(self.official.items())
            },
            "steps": dict(sorted(self.steps.items())),
            "fixed_steps": dict(sorted(self.fixed_steps.items())),
        }
        if self.sequence.count:
            content["sequence"] = self.sequence.as_list()
        if self.needles:
            content["needles"] = [
                {"depth": cell.depth, "length": cell.length, "official": cell.official.as_list()}
                for cell in self.needles
            ]
        return content

    @classmethod
    def from_details(cls, given: Mapping[str, Any]) -> DatasetSummary:
        """Undo ``as_dict``, also after a way through JSON.

        Raises:
            DataError: it is something else.
        """
        try:
            by_images = {int(number): sides for number, sides in given["by_images"].items()}
            return cls(
                dataset=str(given["dataset"]),
                metric=str(given["metric"]),
                official={number: Moments.from_list(sides["official"]) for number, sides in by_images.items()},
                fixed={number: Moments.from_list(sides["fixed"]) for number, sides in by_images.items()},
                variant=str(given["variant"]),
                sequence=Moments.from_list(given.get("sequence", (0, 0, 0))),
                no_answer=int(given["no_answer"]),
                steps=dict(given["steps"]),
                fixed_steps=dict(given["fixed_steps"]),
                needles=tuple(
                    NeedleCell(float(cell["depth"]), float(cell["length"]), Moments.from_list(cell["official"]))
                    for cell in given.get("needles", ())
                ),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
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
    official: dict[int, list[float]] = {}
    fixed: dict[int, list[float]] = {}
    for value in found:
        number = round(value["n_images"])
        official.setdefault(number, []).append(float(value["score"]))
        fixed.setdefault(number, []).append(float(value["fixed"]))
    return DatasetSummary(
        dataset=dataset,
        metric=str(found[0]["metric"]),
        official={number: Moments.of(scores) for number, scores in official.items()},
        fixed={number: Moments.of(scores) for number, scores in fixed.items()},
        variant=variant,
        sequence=Moments.of([float(value["sequence"]) for value in found if value.get("sequence") is not None]),
        no_answer=round(math.fsum(value["no_answer"] for value in found)),
        steps=Counter(str(value["step"]) for value in found),
        fixed_steps=Counter(str(value["fixed_step"]) for value in found),
        needles=_needles(found),
    )


def _needles(values: Iterable[Mapping[str, Any]]) -> tuple[NeedleCell, ...]:
    """Group needles by depth and length; empty if a sample lacks either."""
    cells: dict[tuple[float, float], list[float]] = {}
    for value in values:
        depth, length = value.get("needle_depth"), value.get("needle_length")
        if depth is None or length is None:
            return ()
        cells.setdefault((float(depth), float(length)), []).append(float(value["score"]))
    return tuple(NeedleCell(depth, length, Moments.of(scores)) for (depth, length), scores in sorted(cells.items()))


def estimate(values: Sequence[Mapping[str, Any]], dataset: str, variant: str = "") -> Estimate:
    """Return the mean official score (a fraction) with its error, and the summary in the details."""
    summary = summarise(values, dataset, variant)
    official = summary.pooled()
    error = official.spread.error
    return Estimate(official.mean, None if math.isnan(error) else error, {KEY: summary.as_dict()})
