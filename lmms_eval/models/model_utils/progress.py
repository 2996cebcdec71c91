"""Progress, by the names that model plugins of the family import from here."""

from __future__ import annotations

from lmms_eval.compat.model_utils.progress import SlurmProgress as SlurmProgress
from lmms_eval.compat.model_utils.progress import make_progress as make_progress
