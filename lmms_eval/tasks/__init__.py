"""Tasks: the catalogue of YAML files, and what becomes of a chosen one. The names stand in ``__init__.pyi``."""

from __future__ import annotations

from lmms_eval.utils.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
