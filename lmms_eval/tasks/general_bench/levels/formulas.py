"""Formulas of levels 2 to 5 (arXiv 2505.04620, General-Level; General-Bench specification §8.2, §8.3).

``C`` and ``G`` are a modality's M comprehension and N generation rows. Divisors are always numbers of rows, so that a
task without a score counts as zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from lmms_eval.tasks.general_bench.facts import LANGUAGE, MODALITIES
from lmms_eval.tasks.general_bench.levels.normalise import adjusted_rmse

REFERENCE_EPSILON = 1e-6
"""Constant that the reference adds to the denominator of level 4."""
WHOLE_LANGUAGE = 100.0
"""S_total of level 5. The paper does not define it; the reference uses 100."""


def mean_of_rows(scores: Sequence[float]) -> float:
    """Divide the sum of the finite scores by the number of rows. Without rows it is 0."""
    return math.fsum(score for score in scores if math.isfinite(score)) / len(scores) if scores else 0.0


def winning_mean(specialists: Sequence[float], scores: Sequence[float]) -> float:
    """Divide the sum of the scores that reach the specialist's (``>=``) by the number of the specialists' rows."""
    won = [score for theirs, score in zip(specialists, scores, strict=False) if is_win(theirs, score)]
    return math.fsum(won) / len(specialists) if specialists else 0.0


def is_win(specialist: float, score: float) -> bool:
    """Return whether both have a score and the model's is not below the specialist's."""
    return math.isfinite(specialist) and math.isfinite(score) and score >= specialist


def level4(comprehension: float, generation: float, epsilon: float = 0.0) -> float:
    """Return the harmonic mean of the winning means. It is 0 if one of them is 0."""
    if comprehension == 0 or generation == 0:
        return 0.0
    return 2.0 * comprehension * generation / (comprehension + generation + epsilon)


def reference_language(metrics: Sequence[str], specialists: Sequence[float], scores: Sequence[float]) -> float:
    """Return the reference's mean over won language rows (0 to 100).

    Only the model's first RMSE is mapped. The specialist's is not.

    Raises:
        DataError: that RMSE is 0.
    """
    adjusted = list(scores)
    for row, metric in enumerate(metrics[: len(adjusted)]):
        if metric.upper() == "RMSE":
            raw = adjusted[row]
            adjusted[row] = 100.0 * adjusted_rmse(raw) if math.isfinite(raw) else 0.0
            break
    return winning_mean(specialists, adjusted)


def level5(level4_score: float, language: float) -> float:
    """Return level 4 weighted by the language tasks won: S4 · L / 100."""
    return level4_score * language / WHOLE_LANGUAGE


class GroupMeans(Struct, frozen=True):
    """Means of a sheet over all rows: of the scores, and with rows that are not won counted as 0."""

    mean: float
    winning: float


class ModalityLevels(Struct, frozen=True):
    """Levels of one modality."""

    level2: float
    level3: float
    level4: float

    @property
    def levels(self) -> dict[int, float]:
        """The levels by number."""
        return {2: self.level2, 3: self.level3, 4: self.level4}


def modality_levels(groups: Sequence[GroupMeans], epsilon: float = 0.0) -> ModalityLevels:
    """Return levels 2 to 4 of a modality from its one or two paradigms.

    Levels 2 and 3 are the mean of the paradigms' means (not of all M + N tasks). A single paradigm has no level 4.
    """
    share = 1.0 / len(groups)
    fourth = level4(groups[0].winning, groups[1].winning, epsilon) if len(groups) > 1 else 0.0
    return ModalityLevels(
        level2=share * math.fsum(group.mean for group in groups),
        level3=share * math.fsum(group.winning for group in groups),
        level4=fourth,
    )


class AllLevels(Struct, frozen=True):
    """Levels of every modality, of language, and of the whole."""

    modalities: Mapping[str, ModalityLevels]
    language: float
    final: Mapping[int, float]


def combine(groups: Mapping[str, GroupMeans], epsilon: float = 0.0) -> AllLevels:
    """Compute all levels from the means of each sheet, by the sheets' names.

    Levels 2 to 4 are means of the modalities with sheets, equally weighted. Language enters level 5 only.
    """
    found: dict[str, ModalityLevels] = {}
    for modality in MODALITIES:
        own = [group for name, group in groups.items() if name.split("-")[0] == modality]
        if own:
            found[modality] = modality_levels(own, epsilon)
    language = groups[LANGUAGE].winning if LANGUAGE in groups else 0.0
    fourth = mean_of_modalities([levels.level4 for levels in found.values()])
    final = {
        2: mean_of_modalities([levels.level2 for levels in found.values()]),
        3: mean_of_modalities([levels.level3 for levels in found.values()]),
        4: fourth,
        5: level5(fourth, language),
    }
    return AllLevels(found, language, final)


def mean_of_modalities(scores: Sequence[float]) -> float:
    """Average a level over the modalities, which have equal weights. Without modalities it is 0."""
    return math.fsum(scores) / len(scores) if scores else 0.0
