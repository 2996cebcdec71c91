"""Start of the evaluation server from a program."""

from __future__ import annotations

import os
from dataclasses import dataclass

from lmms_eval.errors import ConfigError
from lmms_eval.server.settings import ServerSettings, stated_token


@dataclass(frozen=True, slots=True)
class ServerArgs:
    """Main settings of a server. ``lmms_eval.server.settings.ServerSettings`` has all that ``lmms-eval serve`` takes.

    Args:
        host: address to listen on; any other than loopback needs a token (``LMMS_EVAL_SERVER_TOKEN``).
        port: port from 1 to 65535.
        max_completed_jobs: number of ended jobs that stay in the list.
        temp_dir_prefix: prefix of the names of the jobs' folders.

    Raises:
        ConfigError: a setting is out of its bounds.
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
    """Serve until SIGINT or SIGTERM.

    Raises:
        UsageError: the address is in use or the server's folder cannot be used.
        MissingOptionalDependencyError: the extra ``server`` is not installed.
    """
    from lmms_eval.server.app import serve

    serve((args or ServerArgs()).settings())
