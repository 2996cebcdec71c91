"""Token use, by the names that model plugins of the family import from here."""

from __future__ import annotations

from lmms_eval.compat.model_utils.usage_metrics import get_running_totals as get_running_totals
from lmms_eval.compat.model_utils.usage_metrics import is_budget_exceeded as is_budget_exceeded
from lmms_eval.compat.model_utils.usage_metrics import log_usage as log_usage
from lmms_eval.compat.model_utils.usage_metrics import reset_usage_metrics as reset_usage_metrics
from lmms_eval.compat.model_utils.usage_metrics import set_budget as set_budget
from lmms_eval.compat.model_utils.usage_metrics import set_task_context as set_task_context
from lmms_eval.compat.model_utils.usage_metrics import summarize_usage_metrics as summarize_usage_metrics
