"""Option letters in answers to multiple-choice questions; the metric ``mcq_match`` reads them alike."""

from __future__ import annotations

from lmms_eval.metrics.answers import extract_mcq_answer

__all__ = ["extract_mcq_answer"]
