"""The metrics over texts and numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from lmms_eval.metrics.captions import bleu_counts, corpus_bleu
from lmms_eval.tasks.general_bench.measures.matching import reference_texts
from lmms_eval.tasks.general_bench.measures.text_scores import (
    audio_exact_match,
    audio_substring_match,
    fallback_tokens,
    judge_accuracy,
    mean_absolute_error,
    mean_squared_error,
    root_mean_squared_error,
    rouge,
    sentence_bleu,
    token_f1,
    treebank_tokens,
    video_contains,
)
from tests.parity.vectors import DATA_DIR

NLTK_DATA = str(DATA_DIR / "nltk_data")
"""Where the reference's tokens come from; absent, the vectors of BLEU fail."""


def _mean(scores: Sequence[float]) -> float:
    return math.fsum(scores) / len(scores) if scores else 0.0


def _average(score: Callable[[Any, Any], float]) -> Callable[[Sequence[Any], Sequence[Any]], float]:
    return lambda predictions, references: _mean([score(p, r) for p, r in zip(predictions, references, strict=True)])


def _rouge(predictions: Sequence[str], references: Sequence[Any]) -> dict[str, float]:
    pairs = [(p, reference_texts(r)) for p, r in zip(predictions, references, strict=True)]
    return {
        kind: _mean([max(rouge(prediction, text, kind) for text in texts) for prediction, texts in pairs])
        for kind in ("rouge1", "rouge2", "rougeL")
    }


def _bleu(predictions: Sequence[str], references: Sequence[Any]) -> dict[str, float]:
    pairs = [
        (treebank_tokens(p, NLTK_DATA), [treebank_tokens(text, NLTK_DATA) for text in reference_texts(r)])
        for p, r in zip(predictions, references, strict=True)
    ]
    return {
        f"bleu{n}": _mean([max(sentence_bleu(prediction, text, n) for text in texts) for prediction, texts in pairs])
        for n in range(1, 5)
    }


def _video_bleu(predictions: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    items = [
        bleu_counts(fallback_tokens(p.lower()), [fallback_tokens(r.lower())], 1)
        for p, r in zip(predictions, references, strict=True)
    ]
    return {"Bleu_1": 100 * corpus_bleu(items, 1)}


def _over_pairs(error: Callable[[Any], float]) -> Callable[[Sequence[Any], Sequence[Any]], float]:
    return lambda predictions, references: error(zip(predictions, references, strict=True))


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "audio_exact_match": _average(audio_exact_match),
    "audio_blur_match": _average(audio_substring_match),
    "token_f1": _average(lambda prediction, reference: token_f1(prediction, reference_texts(reference))),
    "rouge": _rouge,
    "bleu_treebank": _bleu,
    "mae": _over_pairs(mean_absolute_error),
    "mse": _over_pairs(mean_squared_error),
    "rmse": _over_pairs(root_mean_squared_error),
    "judge_accuracy": lambda predictions, _: judge_accuracy(predictions),
    "video_contains_accuracy": _average(lambda p, reference: video_contains(p, reference_texts(reference))),
    "video_corpus_bleu1": _video_bleu,
}
