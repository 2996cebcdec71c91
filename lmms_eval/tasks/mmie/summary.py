"""Summary of judged samples: official and strict means with their counts (§9)."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, astuple

from lmms_eval import stats
from lmms_eval.tasks.mmie.facts import CATEGORIES, QUESTIONS
from lmms_eval.tasks.mmie.scoring import HIGHEST, SCORES

COUNTS = ("scored", "unparsable", "skipped", "unscored")
OVERALL = "AVG"


def mean(scores: Sequence[float]) -> float | None:
    """Return the plain mean, or ``None`` without values."""
    return math.fsum(scores) / len(scores) if scores else None


def official_average(scores: Sequence[float]) -> float | None:
    """Return the mean rounded to three decimals by numpy's rule: times 1,000, to the nearest integer, back.

    Ties go to even. A mean of 0.0005 therefore gives 0.0, although its exact decimal value would round to 0.001.
    """
    found = mean(scores)
    return None if found is None else round(found * 1000) / 1000


def percent(value: float | None) -> float | None:
    """Return a mean of scores on the scale of the published tables: its share of the highest score, times 100."""
    return None if value is None else value / HIGHEST * 100


def weighted_average(by_category: Mapping[str, float]) -> float:
    """Return the published AVG from the values of the three categories: the mean over all questions of the data."""
    total = sum(QUESTIONS.values())
    return math.fsum(QUESTIONS[tag] * by_category[tag] for tag in QUESTIONS) / total


class CategoryRow(Struct, frozen=True):
    """The samples of one category, field or subfield, as sums that can be added over several tasks."""

    scored: int = 0
    """Number of samples with a score, which the official mean is taken over."""
    unparsable: int = 0
    """Number of samples with a judge's reply without a score."""
    skipped: int = 0
    """Number of samples with more pictures than the judge takes."""
    unscored: int = 0
    """Number of samples without a reply or without a judge."""
    total: float = 0
    """Sum of the scores."""
    squares: float = 0

    def __add__(self, other: CategoryRow) -> CategoryRow:
        return CategoryRow(*map(operator.add, astuple(self), astuple(other)))

    @property
    def n(self) -> int:
        """Number of all samples."""
        return self.scored + self.unparsable + self.skipped + self.unscored

    @property
    def mean(self) -> float | None:
        """Mean over the samples with a score, not rounded."""
        return self.total / self.scored if self.scored else None

    @property
    def official(self) -> float | None:
        """The mean as the benchmark prints it: rounded to three decimals by its rule."""
        return None if self.mean is None else official_average([self.mean])

    @property
    def strict(self) -> float | None:
        """Mean over all samples, one without a score counting 0, or ``None`` if no judge replied at all."""
        return self.total / self.n if self.scored or self.unparsable else None

    @property
    def interval(self) -> stats.Interval | stats.NoInterval:
        """The 95 % interval of the mean."""
        if self.mean is None:
            return stats.NoInterval("nothing was scored")
        spread = stats.MeanSpread.of_moments(self.scored, self.total, self.squares, SCORES)
        return stats.score_interval(self.mean, spread, SCORES)

    @property
    def ends(self) -> list[float] | None:
        """Ends of the interval, or ``None``."""
        found = self.interval
        return None if isinstance(found, stats.NoInterval) else [found.low, found.high]

    def as_dict(self) -> dict[str, Any]:
        """Return the row for the results file, with means on both scales. ``from_dict`` reads it."""
        around = self.ends
        return {
            "n": self.n,
            "scored": self.scored,
            "unparsable": self.unparsable,
            "skipped": self.skipped,
            "unscored": self.unscored,
            "official": self.official,
            "mean": self.mean,
            "interval": around,
            "strict_mean": self.strict,
            "percent": percent(self.mean),
            "percent_interval": None if around is None else [percent(end) for end in around],
            "strict_percent": percent(self.strict),
            "sums": [self.total, self.squares],
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> CategoryRow:
        return cls(*(content[name] for name in COUNTS), *content["sums"])

    @classmethod
    def of(cls, sample: Mapping[str, Any]) -> CategoryRow:
        """Make the row of one sample, by its ``outcome`` and ``score``."""
        score = sample["score"] or 0
        return cls(**{sample["outcome"]: 1}, total=score, squares=score * score)


class CategoryTable(Struct, frozen=True):
    """Rows by category, by field and by subfield."""

    categories: Mapping[str, CategoryRow]
    """``AVG`` first, then the categories that occur."""
    fields: Mapping[str, CategoryRow]
    subfields: Mapping[str, CategoryRow]

    def as_dict(self) -> dict[str, Any]:
        return {part: {name: row.as_dict() for name, row in rows.items()} for part, rows in asdict(self).items()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> CategoryTable:
        parts = (content[part] for part in cls.__struct_fields__)
        return cls(*({name: CategoryRow.from_dict(row) for name, row in rows.items()} for rows in parts))

    def __add__(self, other: CategoryTable) -> CategoryTable:
        return CategoryTable(
            _ordered(_joined(self.categories, other.categories)),
            _joined(self.fields, other.fields),
            _joined(self.subfields, other.subfields),
        )


def table(samples: Iterable[Mapping[str, Any]]) -> CategoryTable:
    """Sum up all samples. AVG is over samples, not over categories."""
    categories: dict[str, CategoryRow] = {}
    fields: dict[str, CategoryRow] = {}
    subfields: dict[str, CategoryRow] = {}
    for sample in samples:
        row = CategoryRow.of(sample)
        for rows, name in (
            (categories, OVERALL),
            (categories, sample["category"]),
            (fields, sample["field"]),
            (subfields, sample["subfield"]),
        ):
            rows[name] = rows.get(name, CategoryRow()) + row
    return CategoryTable(_ordered(categories), dict(sorted(fields.items())), dict(sorted(subfields.items())))


def repeat_agreement(samples: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the agreement of repeated questions (``--judge_repeats``), or ``None`` if each was asked once.

    Cohen's κ with quadratic weights is the mean over pairs of repetitions, over samples with a score in both.
    """
    units = [sample["repeats"] for sample in samples if sample["repeats"]]
    if not units:
        return None
    askings = min(len(unit) for unit in units)
    kappas = []
    for first, second in combinations(range(askings), 2):
        both = [(unit[first], unit[second]) for unit in units if unit[first] is not None and unit[second] is not None]
        kappa = stats.weighted_kappa([one for one, _ in both], [other for _, other in both])
        kappas += [] if kappa is None else [kappa]
    return {
        "askings": askings,
        "n": len(units),
        "all_alike": sum(len(set(unit)) == 1 for unit in units) / len(units),
        "weighted_kappa": math.fsum(kappas) / len(kappas) if kappas else None,
        "krippendorff_alpha": stats.krippendorff_alpha(units),
        "means": [mean([unit[number] for unit in units if unit[number] is not None]) for number in range(askings)],
    }


def sensitivity(samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Correlate the score with the answer's length in characters and with its number of pictures."""
    scored = [sample for sample in samples if sample["score"] is not None]
    scores = [sample["score"] for sample in scored]
    return {
        name: stats.pearson(scores, [sample[key] for sample in scored])
        for name, key in (("length", "answer_chars"), ("pictures", "answer_images"))
    }


def _joined(one: Mapping[str, CategoryRow], other: Mapping[str, CategoryRow]) -> dict[str, CategoryRow]:
    return {name: one.get(name, CategoryRow()) + other.get(name, CategoryRow()) for name in sorted({*one, *other})}


def _ordered(rows: Mapping[str, CategoryRow]) -> dict[str, CategoryRow]:
    return {name: rows[name] for name in (OVERALL, *CATEGORIES) if name in rows}
