"""ROUGE-1, -2 and -L, as the ``rouge_score`` package computes them with stemming.

C.-Y. Lin, "ROUGE: a package for automatic evaluation of summaries", 2004. Only the letters a to z and digits count, so
that texts in other scripts score 0; words of more than three characters are stemmed (Porter, NLTK's extensions).
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Literal

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.general_bench.measures.bleu import clipped_matches

RougeKind = Literal["rouge1", "rouge2", "rougeL"]
_SHORT, _LONG = 3, 1000
"""Words up to the first length are not stemmed. Longer than the second they are none, and stemming takes seconds."""
_WORD = re.compile("[a-z0-9]+")


def rouge(prediction: str, reference: str, kind: RougeKind) -> float:
    """F-measure, 0 to 1, of two texts.

    Raises:
        NotEvaluated: NLTK is missing.
    """
    predicted, wanted = rouge_tokens(prediction), rouge_tokens(reference)
    if not predicted or not wanted:
        return 0.0
    if kind == "rougeL":
        return _f_measure(common_length(predicted, wanted), len(predicted), len(wanted))
    order = 1 if kind == "rouge1" else 2
    matches = clipped_matches(predicted, wanted, order)
    return _f_measure(matches, max(len(predicted) - order + 1, 1), max(len(wanted) - order + 1, 1))


def rouge_tokens(text: str) -> list[str]:
    """Stemmed words of the lower-cased text."""
    stem = _stemmer()
    return [stem(word) if _SHORT < len(word) <= _LONG else word for word in _WORD.findall(text.lower())]


def common_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common subsequence."""
    from rapidfuzz.distance import LCSseq

    return int(LCSseq.similarity(first, second))


def _f_measure(matches: int, n_predicted: int, n_wanted: int) -> float:
    if not matches:
        return 0.0
    precision, recall = matches / n_predicted, matches / n_wanted
    return 2 * precision * recall / (precision + recall)


@functools.cache
def _stemmer() -> Callable[[str], str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the many modules that NLTK imports
            from nltk.stem.porter import PorterStemmer
    except ImportError as error:
        raise NotEvaluated("ROUGE: nltk is missing (its Porter stemmer): install lmms_eval[metrics]") from error
    stem: Callable[[str], str] = functools.lru_cache(maxsize=65536)(PorterStemmer().stem)
    return stem
