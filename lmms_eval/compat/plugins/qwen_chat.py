"""The base classes of chat plugins over Qwen3-VL and Qwen3.5."""

from __future__ import annotations

from lmms_eval.compat.plugins import qwen


class Qwen3_VL(qwen.Qwen3_VL):
    """The chat form of ``Qwen3_VL``."""

    is_simple = False


class Qwen3_5(Qwen3_VL, qwen.Qwen3_5):
    """The chat form of ``Qwen3_5``."""
