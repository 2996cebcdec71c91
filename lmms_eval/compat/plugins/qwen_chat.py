"""The base class of chat plugins over Qwen3-VL."""

from __future__ import annotations

from lmms_eval.compat.plugins import qwen


class Qwen3_VL(qwen.Qwen3_VL):
    """The chat form of ``Qwen3_VL``."""

    is_simple = False
