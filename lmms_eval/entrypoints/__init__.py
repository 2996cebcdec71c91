"""Names of the evaluation server, at the family's import path."""

from __future__ import annotations

from lmms_eval.entrypoints.server_args import ServerArgs as ServerArgs
from lmms_eval.entrypoints.server_args import launch_server as launch_server
