"""The options of a run: declared in ``options``, read from the command line, a file and the environment.

``__init__.pyi`` lists the names of the package. Modules that need YAML are imported on first use.
"""

from __future__ import annotations

from lmms_eval.utils.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
