"""The server of a view: on loopback, until it is told to end."""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Callable, Mapping
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from lmms_eval.errors import LmmsEvalError, UsageError
from lmms_eval.http.connections import bounded_config

HOST = "127.0.0.1"
GRACE_S = 3
"""Seconds that open answers have once the server is told to end."""


def listen(port: int) -> socket.socket:
    """Take a port of loopback, any free one for 0.

    Raises:
        UsageError: it is in use, or may not be taken.
    """
    if not 0 <= port < 1 << 16:
        raise UsageError(f"--port {port}: a number from 0 (any free one) to 65535 is needed")
    # With the protocol named, asyncio sends small answers at once; else they wait for the browser's 40 ms.
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # a view that has just ended leaves its port behind
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((HOST, port))
        taken.listen(1024)
    except OSError as error:
        taken.close()
        why = "it is in use" if error.errno == errno.EADDRINUSE else (error.strerror or str(error))
        raise UsageError(f"--port {port}: {why}; give another one, or none for any that is free") from error
    return taken


class ViewServer:
    """Serves an application over a socket that listens already."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._server: _Server | None = None

    def is_ending(self) -> bool:
        return self._server is not None and self._server.should_exit

    def run(self, app: ASGIApp, is_up: Callable[[], None]) -> None:
        """Serve until SIGINT or SIGTERM; ``is_up`` is called when requests are answered."""
        config = bounded_config(app, log_level="error", timeout_graceful_shutdown=GRACE_S, lifespan="off")
        self._server = _Server(config, is_up)
        try:
            self._server.run(sockets=[self._listening])
        except SystemExit as error:
            raise LmmsEvalError("the view could not be served") from error


class _Server(uvicorn.Server):
    """Ends quietly: a signal is the usual end of a view, not an error that is raised again."""

    def __init__(self, config: uvicorn.Config, is_up: Callable[[], None]) -> None:
        super().__init__(config)
        self._is_up = is_up

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._is_up()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as asyncio calls it
        self.force_exit = self.should_exit
        self.should_exit = True


def can_open_browser(environ: Mapping[str, str]) -> bool:
    """Tell whether a browser that is opened here is seen by who started the view."""
    if any(environ.get(name) for name in ("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY")):
        return False
    return sys.platform in ("darwin", "win32") or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def ssh_hint(environ: Mapping[str, str], port: int, host: str) -> str:
    """The line that reaches the view from another machine; empty for who sits at this one."""
    words = environ.get("SSH_CONNECTION", "").split()
    server = words[2] if len(words) == 4 else host
    return f"ssh -N -L {port}:{HOST}:{port} {server}"
