"""Scores of texts and numbers, and the tokenizers that they use.

They are exact match, F1 of tokens and labels, BLEU, ROUGE, word error rate, ANLS and absolute deviations.
"""

from __future__ import annotations

import functools
import importlib.util
import math
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError
from lmms_eval.tasks._task_utils.linguistic import PACKAGES, find_package, nltk_version, open_linguistics


def mean_absolute_error(pairs: Iterable[tuple[Any, Any]]) -> float:
    """Return the mean |prediction − reference| over the pairs of numbers or numeric texts, or 0 without any
    (General-Bench specification §5.1).
    """
    found: list[float] = []
    for prediction, reference in pairs:
        try:
            found.append(abs(float(prediction) - float(reference)))
        except (TypeError, ValueError, OverflowError):
            continue
    return math.fsum(found) / len(found) if found else 0.0


SEPARATOR = "<p>"
"""Separator of the labels of a text."""
BY_WORDS = "bleu1"
"""Name of the measure with values that depend on the tokenizer."""
METHOD_4_K = 5


def word_tokenizer() -> str:
    """Return the tokenizer for BLEU: ``treebank`` (NLTK's) if NLTK and its data are found, else ``white-space``."""
    return _installed_tokenizer(os.environ.get("NLTK_DATA", ""))


@functools.lru_cache(maxsize=8)
def _installed_tokenizer(stated: str) -> str:
    """Return the tokenizer for a value of ``NLTK_DATA``. It is cached, because every sentence asks for it."""
    is_there = all(find_package(package, stated) for package in PACKAGES) and importlib.util.find_spec("nltk")
    return "treebank" if is_there else "white-space"


def tokenizer_label() -> str:
    """Return the name of the tokenizer for the record of a run, with NLTK's version if its words are used."""
    found = word_tokenizer()
    return f"{found} (NLTK {nltk_version()})" if found == "treebank" else found


def word_tokens(text: str, tokenizer: str) -> list[str]:
    """Split a text into words. Raises ``NotEvaluated`` if NLTK or its data is missing or damaged (``treebank``)."""
    return treebank_tokens(text) if tokenizer == "treebank" else fallback_tokens(text)


def fallback_tokens(text: str) -> list[str]:
    """Split a text at white space, as the reference does without NLTK's sentence model."""
    return text.split()


def treebank_tokens(text: str, nltk_data: str | None = None) -> list[str]:
    """Split a text into NLTK's word tokens (Treebank rules after Punkt's sentences). ``nltk_data`` is as in
    ``open_linguistics``.

    Raises ``NotEvaluated`` if NLTK or its data is missing.
    """
    return open_linguistics(nltk_data).words(text)


def sentence_bleu(prediction: Sequence[str], reference: Sequence[str], n: int) -> float:
    """Return BLEU-n against one reference, 0 to 1, with method-4 smoothing (K = 5). It is 0 if no token matches."""
    length = len(prediction)
    precisions: list[float] = []
    n_zeros = 0
    for order in range(1, n + 1):
        matches = clipped_matches(prediction, reference, order)
        if order == 1 and not matches:
            return 0.0
        total = max(1, length - order + 1)
        numerator = float(matches)
        if not matches and length > 1:
            n_zeros += 1
            numerator = math.log(length) / (2**n_zeros * METHOD_4_K)
        precisions.append(numerator / total)
    logarithm = math.fsum(math.log(precision) / n for precision in precisions if precision > 0)
    return brevity_penalty(length, len(reference)) * math.exp(logarithm)


def clipped_matches(prediction: Sequence[str], reference: Sequence[str], order: int) -> int:
    """Count the n-grams of the prediction that the reference has, each at most as often as there."""
    return (ngrams(prediction, order) & ngrams(reference, order)).total()


def ngrams(tokens: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    """Count each n-gram of ``order`` tokens."""
    return Counter(zip(*(tokens[start:] for start in range(order)), strict=False))


def brevity_penalty(n_predicted: int, n_reference: int) -> float:
    """Return 1 if the prediction is longer than the reference, else exp(1 − reference / prediction). It is 0 for an
    empty one.
    """
    if n_predicted > n_reference:
        return 1.0
    return math.exp(1 - n_reference / n_predicted) if n_predicted else 0.0


RougeKind = Literal["rouge1", "rouge2", "rougeL"]
_SHORT, _LONG = 3, 1000
"""Words up to the first length, or above the second, are not stemmed, because very long ones take seconds."""
_WORD = re.compile("[a-z0-9]+")


def rouge(prediction: str, reference: str, kind: RougeKind) -> float:
    """Return the ROUGE F-measure of two texts, 0 to 1. Raises ``NotEvaluated`` if NLTK is missing."""
    predicted, wanted = rouge_tokens(prediction), rouge_tokens(reference)
    if not predicted or not wanted:
        return 0.0
    if kind == "rougeL":
        return _f_measure(common_length(predicted, wanted), len(predicted), len(wanted))
    order = 1 if kind == "rouge1" else 2
    matches = clipped_matches(predicted, wanted, order)
    return _f_measure(matches, max(len(predicted) - order + 1, 1), max(len(wanted) - order + 1, 1))


def rouge_tokens(text: str) -> list[str]:
    """Return the stemmed words of the lower-cased text."""
    stem = _stemmer()
    return [stem(word) if _SHORT < len(word) <= _LONG else word for word in _WORD.findall(text.lower())]


def common_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence."""
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


ANLS_THRESHOLD = 0.5


def word_error_rate(hypothesis: str, reference: str) -> float:
    """Return the least number of insertions, deletions and substitutions of white-space words, divided by the words of
    the reference.

    It may exceed 1. If the reference has no words, it is the number of insertions (as in ``jiwer``). The task's value
    is the mean over utterances. Texts are compared unchanged.
    """
    from rapidfuzz.distance import Levenshtein

    wanted = reference.split()
    return int(Levenshtein.distance(hypothesis.split(), wanted)) / max(1, len(wanted))


def anls(prediction: str, references: Sequence[str]) -> float:
    """Return the best normalised Levenshtein similarity of stripped, lower-cased texts. Below one half it is 0.

    A. F. Biten et al., "Scene text visual question answering", ICCV 2019.
    """
    from rapidfuzz.distance import Levenshtein

    answer = prediction.strip().lower()
    each = (
        float(Levenshtein.normalized_similarity(answer, reference.strip().lower(), score_cutoff=ANLS_THRESHOLD))
        for reference in references
    )
    return max(each, default=0.0)


Counts = tuple[int, int, int]
"""True positives, false positives and false negatives."""


def token_f1(prediction: str, references: Sequence[str]) -> float:
    """Return the best F1 with a reference over unchanged white-space tokens, or 0 without references.

    The overlap counts *distinct* common tokens, the lengths count repeated tokens.
    """
    tokens = prediction.split()
    distinct = set(tokens)
    best = 0.0
    for wanted in map(str.split, references):
        if overlap := len(distinct.intersection(wanted)):
            precision, recall = overlap / len(tokens), overlap / len(wanted)
            best = max(best, 2 * precision * recall / (precision + recall))
    return best


def labels(text: str) -> frozenset[str]:
    """Return the labels between ``<p>`` of the stripped text, unchanged. An empty text has one empty label."""
    return frozenset(text.strip().split(SEPARATOR))


def micro_f1_counts(prediction: str, reference: str) -> Counts:
    """Count how the sets of labels of two texts agree."""
    predicted, wanted = labels(prediction), labels(reference)
    common = len(predicted & wanted)
    return common, len(predicted) - common, len(wanted) - common


def micro_f1(counts: Iterable[Counts]) -> float:
    """Return the F1 of the sums of all counts, 0 to 1. Without true positives it is 0."""
    right, wrong, missed = map(sum, zip(*counts, strict=True))
    if not right:
        return 0.0
    precision, recall = right / (right + wrong), right / (right + missed)
    return 2 * precision * recall / (precision + recall)


def reference_texts(reference: Any, where: str = "reference") -> list[str]:
    """Return the texts of a reference, one or several. Raises ``DataError`` if it is neither text nor a list."""
    if isinstance(reference, str):
        return [reference]
    if isinstance(reference, list | tuple):
        return [str(one) for one in reference]
    raise DataError(f"{where}: {reference!r:.80} is neither text nor a list of texts")


def exact_match(prediction: Any, reference: Any) -> float:
    """Return 1 if the stripped prediction equals a stripped reference, case included (language tasks).

    Raises ``DataError`` if the reference is neither text nor a list.
    """
    answer = str(prediction).strip()
    return float(any(answer == text.strip() for text in reference_texts(reference)))


def audio_contains(prediction: str, reference: Any) -> float:
    """Return 1 if the unchanged reference occurs in the stripped and lower-cased prediction (audio tasks)."""
    return float(str(reference) in prediction.strip().lower())


def video_contains(prediction: str, references: Sequence[str]) -> float:
    """Return 1 if a stripped reference occurs in the stripped prediction (video tasks).

    Case matters unless ``yes`` or ``no`` occurs in the lower-cased reference.
    """
    answer = prediction.strip()
    for reference in map(str.strip, references):
        folded = reference.lower()
        wanted, text = (folded, answer.lower()) if "yes" in folded or "no" in folded else (reference, answer)
        if wanted in text:
            return 1.0
    return 0.0
