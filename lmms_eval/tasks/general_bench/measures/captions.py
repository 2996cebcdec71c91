"""Captions: their tokens, and CIDEr-D.

R. Vedantam, C. L. Zitnick and D. Parikh, "CIDEr: consensus-based image description evaluation", CVPR 2015. The COCO
caption toolkit's ``Cider`` is the paper's variant D (clipped, with a penalty on length), and so are the numbers that
papers print as CIDEr.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lmms_eval.tasks.general_bench.measures.bleu import ngrams

ORDERS = (1, 2, 3, 4)
SIGMA = 6.0
"""Of the penalty on a difference in length."""
SCALE = 10.0
_MARKS = ".,;:!?'\"`*()[]{}<>-_" + "“”‘’«»…–—。，、！？；：（）"
_CLITIC = re.compile(r"(.+?)(n't|'(?:s|m|d|ll|re|ve))")

Grams = Counter[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Caption:
    """A predicted caption and its references, as tokens."""

    prediction: Sequence[str]
    references: Sequence[Sequence[str]]


def caption_tokens(text: str) -> list[str]:
    """Lower-case words without the punctuation around them, English clitics (``n't``, ``'s``) apart.

    On running text the same tokens as the COCO toolkit's (the Stanford PTB tokenizer, punctuation left out).
    """
    found: list[str] = []
    for word in text.lower().replace("’", "'").split():
        bare = word.strip(_MARKS)
        clitic = _CLITIC.fullmatch(bare)
        found += clitic.groups() if clitic else [bare] if bare else []
    return found


def cider(captions: Sequence[Caption]) -> float:
    """Mean CIDEr-D of a corpus, 0 to 10; document frequencies are those of its references.

    N-grams that are in every item's references have no weight, hence a corpus of one item scores 0.
    """
    if not captions:
        return 0.0
    references = [[_grams(reference) for reference in caption.references] for caption in captions]
    frequencies: Grams = Counter()
    for item in references:
        frequencies.update({gram for counts in item for gram in counts})
    weights = {gram: math.log(len(captions) / count) for gram, count in frequencies.items()}
    unseen = math.log(len(captions))
    scores = []
    for caption, item in zip(captions, references, strict=True):
        predicted = _Vector(_grams(caption.prediction), weights, unseen)
        each = [_similarity(predicted, _Vector(counts, weights, unseen)) for counts in item]
        scores.append(math.fsum(each) / len(each))
    return SCALE * math.fsum(scores) / len(scores)


def _grams(tokens: Sequence[str]) -> Grams:
    found: Grams = Counter()
    for order in ORDERS:
        found.update(ngrams(tokens, order))
    return found


class _Vector:
    """Weighted counts of n-grams: their norm by order, and the length in bigrams."""

    __slots__ = ("length", "norms", "values")

    def __init__(self, counts: Grams, weights: Mapping[tuple[str, ...], float], unseen: float) -> None:
        self.values = {gram: count * weights.get(gram, unseen) for gram, count in counts.items()}
        squares = dict.fromkeys(ORDERS, 0.0)
        for gram, value in self.values.items():
            squares[len(gram)] += value * value
        self.norms = {order: math.sqrt(square) for order, square in squares.items()}
        self.length = sum(count for gram, count in counts.items() if len(gram) == 2)


def _similarity(predicted: _Vector, wanted: _Vector) -> float:
    products = dict.fromkeys(ORDERS, 0.0)
    for gram, value in predicted.values.items():
        other = wanted.values.get(gram, 0.0)
        products[len(gram)] += min(value, other) * other
    norms = {order: predicted.norms[order] * wanted.norms[order] for order in ORDERS}
    cosines = [products[order] / norms[order] if norms[order] else 0.0 for order in ORDERS]
    penalty = math.exp(-((predicted.length - wanted.length) ** 2) / (2 * SIGMA**2))
    return penalty * math.fsum(cosines) / len(ORDERS)
