"""The names that plugins of the family import from here."""

from __future__ import annotations

from lmms_eval.compat.plugins.openai import OpenAICompatible as OpenAICompatible
from lmms_eval.compat.plugins.openai import _get_max_new_tokens as _get_max_new_tokens
