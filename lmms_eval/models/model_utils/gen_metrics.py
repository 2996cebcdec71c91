"""Throughput, by the names that model plugins of the family import from here."""

from __future__ import annotations

from lmms_eval.compat.model_utils.gen_metrics import GenMetrics as GenMetrics
from lmms_eval.compat.model_utils.gen_metrics import log_metrics as log_metrics
