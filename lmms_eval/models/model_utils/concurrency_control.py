"""The number of calls in flight and their order, by the names that model plugins of the family import from here."""

from __future__ import annotations

from lmms_eval.compat.model_utils.concurrency_control import AdaptiveConcurrencyConfig as AdaptiveConcurrencyConfig
from lmms_eval.compat.model_utils.concurrency_control import AdaptiveConcurrencyDecision as AdaptiveConcurrencyDecision
from lmms_eval.compat.model_utils.concurrency_control import compute_p95 as compute_p95
from lmms_eval.compat.model_utils.concurrency_control import decide_next_concurrency as decide_next_concurrency
from lmms_eval.compat.model_utils.concurrency_control import (
    extract_text_prefix_from_chat_messages as extract_text_prefix_from_chat_messages,
)
from lmms_eval.compat.model_utils.concurrency_control import is_rate_limit_error as is_rate_limit_error
from lmms_eval.compat.model_utils.concurrency_control import make_prefix_hash as make_prefix_hash
from lmms_eval.compat.model_utils.concurrency_control import parse_bool as parse_bool
