"""Input and output of scoring: a data set's rule, a sample's score, a data set's result."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, field

from lmms_eval.errors import DataError

Level = Literal["Few", "Medium", "Many"]
LEVELS: tuple[Level, ...] = ("Few", "Medium", "Many")
FIRST_MEDIUM, LAST_MEDIUM = 6, 31


def image_level(n_images: int) -> Level:
    """The level of a sample by the number of images of its annotation (none or one counts as ``Few``)."""
    if n_images < FIRST_MEDIUM:
        return "Few"
    return "Many" if n_images > LAST_MEDIUM else "Medium"


Rule = Literal["choice", "rouge", "token", "substring"]
ACCURACY, ROUGE = "Accuracy", "Rouge-L f"
_BY_QUESTION_TYPE: Mapping[str, Rule] = {"multi-choice": "choice", "open-ended": "rouge"}


class DatasetFacts(Struct, frozen=True):
    """A data set for scoring: its name and the ``question_type`` of its annotation file."""

    name: str
    question_type: str | None = None

    @property
    def rule(self) -> Rule:
        """The rule for answers: by the data set's name first, then by the question type.

        Raises:
            DataError: the question type is needed and is neither ``multi-choice`` nor ``open-ended``.
        """
        if "NeedleInAHaystack" in self.name:
            return "token"
        if "MMCoQA" in self.name:
            return "substring"
        rule = _BY_QUESTION_TYPE.get(self.question_type) if isinstance(self.question_type, str) else None
        if rule is None:
            raise DataError(
                f"{self.name}: meta_data.question_type is {self.question_type!r}; it must be multi-choice or open-ended"
            )
        return rule

    @property
    def metric(self) -> str:
        """``Accuracy`` or ``Rouge-L f``. Raises as :attr:`rule` does."""
        return ROUGE if self.rule == "rouge" else ACCURACY


class SampleScore(Struct, frozen=True):
    """One answer, judged by the ``official`` and by the ``fixed`` rules.

    Scores are fractions (0 to 1): ``int`` for right or wrong, ``float`` for ROUGE-L.
    A sample with an ``error`` *failed*: it has no scores.
    """

    sample_id: str
    metric: str
    """``Accuracy`` or ``Rouge-L f``."""
    level: Level
    n_images: int
    score: int | float | None = None
    """Score by the ``official`` rules; ``None`` if the sample failed."""
    fixed: int | float | None = None
    """Score by the ``fixed`` rules; ``None`` if the sample failed."""
    sequence: float | None = None
    """F1 of the ordinary (word sequence) ROUGE-L; only for ROUGE data sets."""
    step: str = ""
    """The rule that decided the official score, e.g. ``text`` or ``bare letter``."""
    fixed_step: str = ""
    """The rule that decided the fixed score; ``none`` if no rule hit."""
    extracted: str | None = None
    """The letters read from the answer by the official rules; only for choice questions."""
    fixed_extracted: str | None = None
    """The letter read by the fixed rules; only for choice questions, ``None`` if no rule hit."""
    is_empty: bool = False
    """The answer is empty or white space: counted as ``no_answer``."""
    normalised: Normalised | None = None
    """The normalised texts, as ``pred_with_extracted.json`` shows them."""
    note: str = ""
    """Remark on a case that crashes the reference, with the specified value used instead."""
    error: str | None = None
    """The reason of a failed sample."""


class Normalised(Struct, frozen=True):
    """Texts after the official normalisation."""

    prediction: str
    gold: str
    choices: tuple[str, ...] = ()


class Pooled(Struct, frozen=True):
    """A sum of scores over a number of samples."""

    total: int | float = 0
    count: int = 0

    @property
    def mean(self) -> int | float:
        """The mean; 0 without samples, as in ``eval.json``."""
        return self.total / self.count if self.count else 0


class Scores(Struct, frozen=True):
    """Scores of a data set by one set of rules: over all samples, and by image level."""

    overall: Pooled = field(default_factory=Pooled)
    levels: Mapping[Level, Pooled] = field(default_factory=dict)

    def as_eval(self, metric: str) -> dict[str, Any]:
        """Return the content of ``eval.json``. Level keys name ``Accuracy`` for every metric, as in the reference."""
        parts = {level: self.levels.get(level, Pooled()) for level in LEVELS}
        return {
            metric: float(self.overall.mean),
            "image_quantity_level-Accuracy": {level: part.mean for level, part in parts.items()},
            "image_quantity_level-Result": {level: [part.total, part.count] for level, part in parts.items()},
        }


class DatasetResult(Struct, frozen=True):
    """All scores of one data set. Failed samples count in ``n_failed`` and nowhere else."""

    name: str
    metric: str
    official: Scores
    fixed: Scores
    sequence: Pooled
    """Of the word-sequence ROUGE-L; empty for other data sets."""
    n_scored: int
    n_failed: int
    no_answer: int
    steps: Mapping[str, int]
    """Numbers of samples that each official rule decided."""
    fixed_steps: Mapping[str, int]

    def as_eval(self) -> dict[str, Any]:
        """The content of ``eval.json``."""
        return self.official.as_eval(self.metric)

    def as_fixed(self) -> dict[str, Any]:
        """The content of ``eval_fixed.json``: the fixed scores in the same form, with counts."""
        content = self.fixed.as_eval(self.metric)
        if self.sequence.count:
            content["Rouge-L sequence f"] = float(self.sequence.mean)
        return {
            **content,
            "official": float(self.official.overall.mean),
            "scored": self.n_scored,
            "failed": self.n_failed,
            "no_answer": self.no_answer,
            "matching_steps": dict(sorted(self.steps.items())),
            "fixed_matching_steps": dict(sorted(self.fixed_steps.items())),
        }


def aggregate(facts: DatasetFacts, samples: Iterable[SampleScore]) -> DatasetResult:
    """Aggregate the scores of a data set, overall and by image level; failed samples are counted and left out.

    Raises:
        DataError: the data set's question type is unknown.
    """
    found = list(samples)
    scored = [sample for sample in found if sample.error is None]
    return DatasetResult(
        name=facts.name,
        metric=facts.metric,
        official=_scores([(sample.level, sample.score) for sample in scored if sample.score is not None]),
        fixed=_scores([(sample.level, sample.fixed) for sample in scored if sample.fixed is not None]),
        sequence=pool([sample.sequence for sample in scored if sample.sequence is not None]),
        n_scored=len(scored),
        n_failed=len(found) - len(scored),
        no_answer=sum(sample.is_empty for sample in scored),
        steps=Counter(sample.step for sample in scored),
        fixed_steps=Counter(sample.fixed_step for sample in scored),
    )


def _scores(scores: Sequence[tuple[Level, int | float]]) -> Scores:
    return Scores(
        pool([score for _, score in scores]),
        {level: pool([score for its_level, score in scores if its_level == level]) for level in LEVELS},
    )


def pool(scores: Sequence[int | float]) -> Pooled:
    """Return sum and number; whole numbers stay whole, as in the reference's files."""
    is_whole = all(isinstance(score, int) for score in scores)
    return Pooled(sum(map(int, scores)) if is_whole else math.fsum(scores), len(scores))
