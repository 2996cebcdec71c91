"""Model-as-judge: building a judge from options, putting questions to it, reading what it says.

A judge is a model of the registry. In a run the engine asks it beside the generation (``lmms_eval.engine.judging``);
scripts call ``ask``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmms_eval.judges.driver import ask
    from lmms_eval.judges.options import DEFAULT_JUDGE_MODEL, JudgeOptions
    from lmms_eval.judges.providers import Judge, open_judge
    from lmms_eval.judges.scripted import register_script

_HOMES = {
    "DEFAULT_JUDGE_MODEL": "options",
    "Judge": "providers",
    "JudgeOptions": "options",
    "ask": "driver",
    "open_judge": "providers",
    "register_script": "scripted",
}
__all__ = ["DEFAULT_JUDGE_MODEL", "Judge", "JudgeOptions", "ask", "open_judge", "register_script"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"lmms_eval.judges.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
