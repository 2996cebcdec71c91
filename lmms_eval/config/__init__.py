"""The options of a run: declared in ``options``, read from the command line, a file and the environment.

The names of the package stand in ``__init__.pyi``; what needs pydantic or YAML is loaded when it is asked for.
"""

from __future__ import annotations

from lmms_eval.utils.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
