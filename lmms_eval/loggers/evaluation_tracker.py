"""The names that task files of the family import from here."""

from __future__ import annotations

from lmms_eval.compat.config_tracker import GeneralConfigTracker as GeneralConfigTracker
from lmms_eval.compat.evaluation_tracker import EvaluationTracker as EvaluationTracker
