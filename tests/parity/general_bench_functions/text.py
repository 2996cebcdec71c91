"""The metrics over texts and numbers."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from lmms_eval.errors import DataError
from lmms_eval.metrics.captions import bleu_counts, corpus_bleu
from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from lmms_eval.tasks.general_bench.measures.contract import Context
from lmms_eval.tasks.general_bench.measures.judged import state_of
from lmms_eval.tasks.general_bench.measures.registry import measures_of
from lmms_eval.tasks.general_bench.measures.text_math import (
    audio_contains,
    exact_match,
    fallback_tokens,
    mean_absolute_error,
    reference_texts,
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


def _root_mean_square(predictions: Sequence[Any], references: Sequence[Any]) -> float:
    """Root mean square over the pairs of numbers; the reference leaves out all others."""
    measure = measures_of("texts")["rmse"]
    states = []
    for prediction, reference in zip(predictions, references, strict=True):
        with contextlib.suppress(DataError, UnreadableAnswer):
            states.append(measure.state(prediction, SimpleNamespace(reference=reference, where="record"), Context()))
    return measure.value(states) if states else 0.0


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "audio_blur_match": _average(audio_contains),
    "audio_exact_match": _average(exact_match),
    "token_f1": _average(lambda prediction, reference: token_f1(prediction, reference_texts(reference))),
    "rouge": _rouge,
    "bleu_treebank": _bleu,
    "mae": lambda predictions, references: mean_absolute_error(zip(predictions, references, strict=True)),
    "mse": lambda predictions, references: _root_mean_square(predictions, references) ** 2,
    "rmse": _root_mean_square,
    "judge_accuracy": lambda predictions, _: _mean([state_of(reply) for reply in predictions]),
    "video_contains_accuracy": _average(lambda p, reference: video_contains(p, reference_texts(reference))),
    "video_corpus_bleu1": _video_bleu,
}
