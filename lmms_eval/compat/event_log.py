"""The log of events that tasks and plugins of the family write to."""

from __future__ import annotations

from loguru import logger as eval_logger

__all__ = ["eval_logger"]
