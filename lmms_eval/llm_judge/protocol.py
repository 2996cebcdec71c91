"""Requests to a judge server and its replies, at the family's import path."""

from __future__ import annotations

from lmms_eval.compat.llm_judge.protocol import Request as Request
from lmms_eval.compat.llm_judge.protocol import Response as Response
from lmms_eval.compat.llm_judge.protocol import ServerConfig as ServerConfig
