"""Interfaces for authors of models and tasks. Imports only exceptions and small helpers of this package.

``__init__.pyi`` lists the names. The module of a name is imported on first access.
"""

from __future__ import annotations

from lmms_eval.utils.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
