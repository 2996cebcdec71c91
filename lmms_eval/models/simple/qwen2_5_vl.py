"""The names that plugins of the family import from here."""

from __future__ import annotations

from lmms_eval.compat.plugins.qwen import Qwen2_5_VL as Qwen2_5_VL
