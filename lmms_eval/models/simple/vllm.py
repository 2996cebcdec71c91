"""The names that plugins of the family import from here."""

from __future__ import annotations

from lmms_eval.compat.plugins.vllm import VLLM as VLLM
