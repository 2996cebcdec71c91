"""Judge servers by name, at the family's import path."""

from __future__ import annotations

from lmms_eval.compat.llm_judge.factory import ProviderFactory as ProviderFactory
from lmms_eval.compat.llm_judge.factory import get_server as get_server
