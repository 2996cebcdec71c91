"""Import path of the family. ``__init__.pyi`` lists the names and their modules."""

from __future__ import annotations

from lmms_eval.utils.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
