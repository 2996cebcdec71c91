"""Contracts for authors of models and tasks. Imports nothing else of the package but exceptions and small helpers.

The names stand in ``__init__.pyi``, each by the module that is imported when it is asked for.
"""

from __future__ import annotations

from lmms_eval.utils.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
