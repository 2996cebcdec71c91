"""Normalisation of answers to visual questions, at the family's path."""

from __future__ import annotations

from lmms_eval.compat.vqa_answers import EvalAIAnswerProcessor as EvalAIAnswerProcessor
