"""The names that plugins of the family import from here."""

from __future__ import annotations

from lmms_eval.compat.plugins.qwen_chat import Qwen3_5 as Qwen3_5
