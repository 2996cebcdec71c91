"""Metrics under the path from which task files import them; ``metrics.pyi`` names the module of each."""

from __future__ import annotations

from lmms_eval.utils.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
