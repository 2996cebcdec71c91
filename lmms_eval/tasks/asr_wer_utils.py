"""Names that task files of the family import from here."""

from __future__ import annotations

from lmms_eval.compat.asr import EvaluationTokenizer as EvaluationTokenizer
from lmms_eval.compat.asr import compute_wer as compute_wer
from lmms_eval.compat.asr import remove_sp as remove_sp
from lmms_eval.compat.asr import zhconv_convert as zhconv_convert
