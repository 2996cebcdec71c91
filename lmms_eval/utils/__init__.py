"""Small helpers without state; the names that task files and plugins of the family import from here.

They stand in ``__init__.pyi``. A module is imported when one of its names is asked for: commands that need one of them
start without the others.
"""

from __future__ import annotations

from lmms_eval.utils.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
