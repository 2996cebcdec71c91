"""Input and output of scoring: a data set's rule, a sample's score, a data set's result."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from lmms_eval.errors import DataError

LEVEL_RANGES: Mapping[str, tuple[int, float]] = {"Few": (0, 5), "Medium": (6, 31), "Many": (32, math.inf)}
"""Numbers of images of each level, first and last. Zero images or one count as ``Few``."""


def image_level(n_images: int) -> str:
    """The level of a sample by the number of images of its annotation (none or one counts as ``Few``)."""
    return next(level for level, (_, most) in LEVEL_RANGES.items() if n_images <= most)


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

        Raises ``DataError`` if the question type is needed and is neither ``multi-choice`` nor ``open-ended``.
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
    level: str
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
    normalised: tuple[str, str, tuple[str, ...]] | None = None
    """Answer, reference and options after the official normalisation, as ``pred_with_extracted.json`` shows them."""
    note: str = ""
    """Remark on a case that crashes the reference, with the specified value used instead."""
    error: str | None = None
    """The reason of a failed sample."""


class DatasetResult(Struct, frozen=True):
    """The scores of one data set."""

    name: str
    metric: str
    scored: tuple[SampleScore, ...]
    n_failed: int
    """Failed samples, which count nowhere else."""

    @property
    def n_scored(self) -> int:
        return len(self.scored)

    def as_eval(self, side: Literal["score", "fixed"] = "score") -> dict[str, Any]:
        """Return the content of ``eval.json``, or the same of the fixed scores.

        Level keys name ``Accuracy`` for every metric, as in the reference.
        """
        scores = [(sample.level, getattr(sample, side)) for sample in self.scored if getattr(sample, side) is not None]
        parts = {level: pool([score for its_level, score in scores if its_level == level]) for level in LEVEL_RANGES}
        return {
            self.metric: float(_mean([score for _, score in scores])),
            "image_quantity_level-Accuracy": {
                level: total / count if count else 0 for level, (total, count) in parts.items()
            },
            "image_quantity_level-Result": {level: list(part) for level, part in parts.items()},
        }

    def as_fixed(self) -> dict[str, Any]:
        """Return the content of ``eval_fixed.json``: the fixed scores in the same form, with counts."""
        content = self.as_eval("fixed")
        if sequence := [sample.sequence for sample in self.scored if sample.sequence is not None]:
            content["Rouge-L sequence f"] = float(_mean(sequence))
        return {
            **content,
            "official": float(_mean([sample.score for sample in self.scored if sample.score is not None])),
            "scored": self.n_scored,
            "failed": self.n_failed,
            "no_answer": sum(sample.is_empty for sample in self.scored),
            "matching_steps": dict(sorted(Counter(sample.step for sample in self.scored).items())),
            "fixed_matching_steps": dict(sorted(Counter(sample.fixed_step for sample in self.scored).items())),
        }


def aggregate(facts: DatasetFacts, samples: Sequence[SampleScore]) -> DatasetResult:
    """Separate the scored from the failed samples. Raises ``DataError`` if the data set's question type is unknown."""
    scored = tuple(sample for sample in samples if sample.error is None)
    return DatasetResult(facts.name, facts.metric, scored, len(samples) - len(scored))


def pool(scores: Sequence[int | float]) -> tuple[int | float, int]:
    """Return sum and number; whole numbers stay whole, as in the reference's files."""
    is_whole = all(isinstance(score, int) for score in scores)
    return sum(map(int, scores)) if is_whole else math.fsum(scores), len(scores)


def _mean(scores: Sequence[int | float]) -> int | float:
    """Return the mean; 0 without samples, as in ``eval.json``."""
    total, count = pool(scores)
    return total / count if count else 0
