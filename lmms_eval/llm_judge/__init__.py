"""The judge interface of the family's task files, at their import path."""

from __future__ import annotations

from lmms_eval.compat.llm_judge.factory import ProviderFactory as ProviderFactory
from lmms_eval.compat.llm_judge.factory import get_server as get_server
from lmms_eval.compat.llm_judge.protocol import Request as Request
from lmms_eval.compat.llm_judge.protocol import Response as Response
from lmms_eval.compat.llm_judge.protocol import ServerConfig as ServerConfig
from lmms_eval.compat.llm_judge.server import DummyServer as DummyServer
from lmms_eval.compat.llm_judge.server import JudgeServer as JudgeServer
from lmms_eval.compat.llm_judge.server import ServerInterface as ServerInterface
