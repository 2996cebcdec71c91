"""Loggers at the family's import path; ``__init__.pyi`` lists them with their modules."""

from __future__ import annotations

from lmms_eval.utils.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
