"""Tasks: the catalogue of YAML files, and the tasks that are built from them. ``__init__.pyi`` lists the names."""

from __future__ import annotations

from lmms_eval.utils.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
