"""MileBench's scoring: ``score_sample`` judges one answer, ``aggregate`` a data set's."""

from __future__ import annotations

from lmms_eval.tasks.milebench.scoring.levels import LEVELS, Level, image_level
from lmms_eval.tasks.milebench.scoring.model import DatasetFacts, DatasetResult, Pooled, SampleScore, Scores
from lmms_eval.tasks.milebench.scoring.results import aggregate, pool
from lmms_eval.tasks.milebench.scoring.samples import score_sample

__all__ = [
    "LEVELS",
    "DatasetFacts",
    "DatasetResult",
    "Level",
    "Pooled",
    "SampleScore",
    "Scores",
    "aggregate",
    "image_level",
    "pool",
    "score_sample",
]
