"""Model-as-judge: building a judge from options, asking it questions, and parsing its replies.

A judge is a model of the registry. In a run, the engine asks it while the model under test still generates
(``lmms_eval.engine.judging``). Scripts call ``ask``. The public names are listed in ``__init__.pyi``.
"""

from __future__ import annotations

from lmms_eval.utils.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
