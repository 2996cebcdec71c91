"""The judge interface of the family's task files: a client that ``process_results`` calls itself.

New tasks name ``doc_to_judge`` instead (``docs/judges.md``): the engine then asks the judge beside the generation.
"""

from __future__ import annotations

from lmms_eval.compat.llm_judge.factory import ProviderFactory, get_server
from lmms_eval.compat.llm_judge.protocol import Request, Response, ServerConfig
from lmms_eval.compat.llm_judge.server import DummyServer, JudgeServer, ServerInterface

__all__ = [
    "DummyServer",
    "JudgeServer",
    "ProviderFactory",
    "Request",
    "Response",
    "ServerConfig",
    "ServerInterface",
    "get_server",
]
