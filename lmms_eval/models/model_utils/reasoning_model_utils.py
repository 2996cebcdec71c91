"""The final answer of a reasoning model, by the names that model plugins of the family import from here."""

from __future__ import annotations

from lmms_eval.compat.model_utils.reasoning_model_utils import (
    parse_reasoning_model_answer as parse_reasoning_model_answer,
)
