"""Option letters in answers, at the family's path."""

from __future__ import annotations

from lmms_eval.compat.mcq_answers import extract_mcq_answer as extract_mcq_answer
