"""Names of this package by their modules; see ``lmms_eval.utils.lazy``."""

from lmms_eval.loggers.evaluation_tracker import EvaluationTracker as EvaluationTracker
from lmms_eval.loggers.wandb_logger import WandbLogger as WandbLogger
