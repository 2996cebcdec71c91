"""Small helpers, and the names that task files and plugins import from here.

``__init__.pyi`` lists the names. A module is imported when one of its names is used, so that commands start quickly.
"""

from __future__ import annotations

from lmms_eval.utils.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
