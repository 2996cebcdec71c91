"""Aggregates the scores of samples to the result of a data set."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from lmms_eval.tasks.milebench.scoring.levels import LEVELS, Level
from lmms_eval.tasks.milebench.scoring.model import DatasetFacts, DatasetResult, Pooled, SampleScore, Scores


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
