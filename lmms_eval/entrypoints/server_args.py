"""The evaluation server with the family's settings."""

from __future__ import annotations

import os
from dataclasses import dataclass

from lmms_eval.errors import ConfigError
from lmms_eval.server.settings import ServerSettings, stated_token


@dataclass(frozen=True, slots=True)
class ServerArgs:
    """Settings of a server; ``lmms-eval serve`` has more (``lmms_eval.server.settings.ServerSettings``).

    Args:
        host: address to listen on; any other than loopback needs a token (``LMMS_EVAL_SERVER_TOKEN``).
        port: from 1 to 65535.
        max_completed_jobs: ended jobs that stay in the list.
        temp_dir_prefix: beginning of the names of the jobs' folders.

    Raises:
        ConfigError: one of them is out of its bounds.
    """

    host: str = "localhost"
    port: int = 8000
    max_completed_jobs: int = 100
    temp_dir_prefix: str = "lmms_eval_"

    def __post_init__(self) -> None:
        if self.port == 0:
            raise ConfigError("port: give a number from 1 to 65535; got 0")
        self.settings()

    def settings(self) -> ServerSettings:
        """Return the settings of the server."""
        return ServerSettings(
            host=self.host,
            port=self.port,
            max_completed_jobs=self.max_completed_jobs,
            prefix=self.temp_dir_prefix,
            token=stated_token(None, os.environ),
        )


def launch_server(args: ServerArgs | None = None) -> None:
    """Serve until the process is told to end.

    Raises:
        UsageError: the address cannot be taken, or the server's folder not be used.
        MissingOptionalDependencyError: the extra ``server`` is not installed.
    """
    from lmms_eval.server.app import serve

    serve((args or ServerArgs()).settings())
