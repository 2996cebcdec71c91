"""The public names of the evaluation server and its clients."""

from __future__ import annotations

from lmms_eval.entrypoints.server_args import ServerArgs as ServerArgs
from lmms_eval.entrypoints.server_args import launch_server as launch_server
from lmms_eval.server.client import AsyncEvalClient as AsyncEvalClient
from lmms_eval.server.client import EvalClient as EvalClient
