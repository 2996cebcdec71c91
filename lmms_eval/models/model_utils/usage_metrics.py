"""Token use, by the names that model plugins of the family import from here."""

from __future__ import annotations

from lmms_eval.compat.model_utils.usage_metrics import log_usage as log_usage
