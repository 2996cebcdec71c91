"""Overlap of word sequences with a reference translation."""

from __future__ import annotations

import functools
import io
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.megabench.conversions.literals import ConversionError

MAX_NGRAM = 4
MAX_CHARS = 100_000
"""Longest text; no translation is longer, and splitting longer texts takes seconds."""

_FREQUENCY = re.compile(r"^[^ \n]+ (\d+)", re.MULTILINE)
_SAME_FIRST_CHARACTER = re.compile(r"^(.).*\n?(?:\1.*\n?)*", re.MULTILINE)
"""Lines of a dictionary that follow each other and begin with the same character."""


def bleu(response: Any, truth: Any) -> float:
    """Corpus BLEU over 100 of two texts or two lists of texts.

    The truth is the hypothesis and the response the reference, as in the official evaluator.
    """
    if isinstance(response, str) and isinstance(truth, str):
        hypotheses, references = [truth], [response]
    elif isinstance(response, list | tuple) and isinstance(truth, list | tuple):
        hypotheses, references = list(truth), list(response)
    else:
        return 0.0
    from sacrebleu import corpus_bleu

    _check_length(*hypotheses, *references)
    return float(corpus_bleu(hypotheses, [references]).score) / 100


def gleu_cn(response: Any, truth: Any) -> float:
    """Sentence GLEU (Wu et al. 2016) on words of jieba's search mode.

    Raises ``NotEvaluated`` if jieba is not installed.
    """
    if not (isinstance(response, str) and isinstance(truth, str)):
        return 0.0
    _check_length(response, truth)
    return sentence_gleu(_words(response), _words(truth))


def sentence_gleu(first: Sequence[str], second: Sequence[str]) -> float:
    """Divide the matching n-grams (n = 1 to 4) by the larger number of n-grams; symmetric, 0 for an empty side."""
    counts, others = _ngrams(first), _ngrams(second)
    total = max(counts.total(), others.total())
    return (counts & others).total() / total if total else 0.0


def _check_length(*texts: Any) -> None:
    if sum(len(text) for text in texts) > MAX_CHARS:
        raise ConversionError(f"more than {MAX_CHARS} characters are no translation")


def _ngrams(words: Sequence[str]) -> Counter[tuple[str, ...]]:
    return Counter(
        tuple(words[start : start + size]) for size in range(1, MAX_NGRAM + 1) for start in range(len(words) - size + 1)
    )


def _words(text: str) -> list[str]:
    tokenizer, unread = _tokenizer()
    for first in unread.keys() & set(text):
        frequencies, _ = tokenizer.gen_pfdict(io.BytesIO(unread[first]))
        tokenizer.FREQ.update(frequencies)
        unread.pop(first, None)  # last, so that another thread either finds the lines or does not need them
    return list(tokenizer.cut_for_search(text))


@functools.cache
def _tokenizer() -> tuple[Any, dict[str, bytes]]:
    """Return the tokenizer without words, and the lines of its dictionary by the first character of their words.

    Words are looked up only if their first character is in the text. Reading all 350,000 takes four times as long.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old escape sequences and pkg_resources in its source
            import jieba
    except ImportError as error:
        raise NotEvaluated("jieba is missing: install lmms_eval[metrics]") from error
    jieba.setLogLevel("WARNING")
    tokenizer = jieba.Tokenizer()
    # initialize() is not used: it reads and writes a cache file that any user of the machine can put into the folder of
    # temporary files, and logs its actions.
    with tokenizer.get_dict_file() as file:
        dictionary = file.read().decode()
    tokenizer.total = sum(map(int, _FREQUENCY.findall(dictionary)))
    tokenizer.initialized = True
    lines: dict[str, bytes] = {}
    for found in _SAME_FIRST_CHARACTER.finditer(dictionary):
        lines[found[1]] = lines.get(found[1], b"") + found[0].encode()
    return tokenizer, lines
