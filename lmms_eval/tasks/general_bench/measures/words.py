"""Edit distances: word error rate and ANLS."""

from __future__ import annotations

from collections.abc import Sequence

ANLS_THRESHOLD = 0.5


def word_error_rate(hypothesis: str, reference: str) -> float:
    """Least insertions, deletions and substitutions of white-space words, over the words of the reference.

    May exceed 1. Without a word in the reference the insertions count as they are (so does ``jiwer``). The task's
    value is the mean over utterances. Texts are compared as they stand.
    """
    from rapidfuzz.distance import Levenshtein

    wanted = reference.split()
    return int(Levenshtein.distance(hypothesis.split(), wanted)) / max(1, len(wanted))


def anls(prediction: str, references: Sequence[str]) -> float:
    """The best normalised Levenshtein similarity of stripped, lower-cased texts; below one half it is 0.

    A. F. Biten et al., "Scene text visual question answering", ICCV 2019.
    """
    from rapidfuzz.distance import Levenshtein

    answer = prediction.strip().lower()
    each = (
        float(Levenshtein.normalized_similarity(answer, reference.strip().lower(), score_cutoff=ANLS_THRESHOLD))
        for reference in references
    )
    return max(each, default=0.0)
