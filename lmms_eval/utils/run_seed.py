"""The run's seed, for helpers of tasks that draw without being told of a document."""

from __future__ import annotations

from contextvars import ContextVar

RUN_SEED: ContextVar[int] = ContextVar("RUN_SEED", default=0)
"""Seed of the run whose task function is at work; 0 outside a run."""
