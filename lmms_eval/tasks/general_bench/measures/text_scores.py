"""The text metrics as pure functions, gathered."""

from __future__ import annotations

from lmms_eval.tasks.general_bench.measures.bleu import (
    fallback_tokens,
    sentence_bleu,
    treebank_tokens,
    word_tokenizer,
)
from lmms_eval.tasks.general_bench.measures.choices import choice_match, first_answer_match, options_of
from lmms_eval.tasks.general_bench.measures.code_bleu import code_bleu, code_fault
from lmms_eval.tasks.general_bench.measures.deviations import (
    mean_absolute_error,
    mean_squared_error,
    root_mean_squared_error,
)
from lmms_eval.tasks.general_bench.measures.matching import (
    audio_exact_match,
    audio_substring_match,
    exact_match,
    judge_accuracy,
    video_contains,
)
from lmms_eval.tasks.general_bench.measures.overlap import Counts, micro_f1, micro_f1_counts, token_f1
from lmms_eval.tasks.general_bench.measures.rouge import rouge
from lmms_eval.tasks.general_bench.measures.words import anls, word_error_rate

__all__ = [
    "Counts",
    "anls",
    "audio_exact_match",
    "audio_substring_match",
    "choice_match",
    "code_bleu",
    "code_fault",
    "exact_match",
    "fallback_tokens",
    "first_answer_match",
    "judge_accuracy",
    "mean_absolute_error",
    "mean_squared_error",
    "micro_f1",
    "micro_f1_counts",
    "options_of",
    "root_mean_squared_error",
    "rouge",
    "sentence_bleu",
    "token_f1",
    "treebank_tokens",
    "video_contains",
    "word_error_rate",
    "word_tokenizer",
]
