"""The name that programs of the family import from here."""

from __future__ import annotations

from lmms_eval.compat.wandb_logger import WandbLogger as WandbLogger
