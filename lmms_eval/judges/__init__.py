"""Model-as-judge: building a judge from options, putting questions to it, reading what it says.

A judge is a model of the registry. In a run the engine asks it beside the generation (``lmms_eval.engine.judging``);
scripts call ``ask``. The names stand in ``__init__.pyi``.
"""

from __future__ import annotations

from lmms_eval.utils.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
