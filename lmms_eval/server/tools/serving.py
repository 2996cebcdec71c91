"""Serving the tools: over standard input and output to one client, over HTTP to several."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

from lmms_eval.errors import MissingOptionalDependencyError
from lmms_eval.server.settings import ServerSettings
from lmms_eval.server.tools.jobs import Jobs, OwnJobs

log = logging.getLogger(__name__)
PATH = "/mcp"
LARGEST_REQUEST = 1 << 20
_EXTRA = "the server of tools needs the package mcp from release 2 on: pip install 'lmms_eval[mcp]'"


def require_mcp() -> None:
    """Raise ``MissingOptionalDependencyError`` where the package is missing or too old."""
    try:
        from mcp.server.transport_security import TransportSecuritySettings  # noqa: F401
        from mcp.types import ToolAnnotations
    except ImportError as error:
        raise MissingOptionalDependencyError(f"{_EXTRA} ({error})") from error
    if "read_only_hint" not in ToolAnnotations.model_fields:
        raise MissingOptionalDependencyError(_EXTRA)


def serve_stdio(server: Any, jobs: Jobs) -> None:
    """Serve one client until it closes standard input. Runs go on then, and with every other end of the process."""
    from mcp.server.stdio import stdio_server

    async def serve() -> None:
        # A thread that waits for standard input would hold up every gentler end.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        try:
            async with stdio_server() as (reading, writing):
                with redirect_stdout(sys.stderr):  # what libraries print
                    await server.run(reading, writing, server.create_initialization_options())
        finally:
            await jobs.close()

    asyncio.run(serve())


def serve_http(server: Any, jobs: Jobs, settings: ServerSettings, told: Callable[[str], None]) -> None:
    """Serve clients over streamable HTTP until SIGINT or SIGTERM.

    Raises:
        UsageError: the address cannot be taken or needs a token, or the folder is another server's.
    """
    import uvicorn
    from mcp.server.transport_security import TransportSecuritySettings

    from lmms_eval.http.connections import bounded_config
    from lmms_eval.http.guard import is_loopback
    from lmms_eval.server.serving import bound, check_token, ending_quietly, guarded

    check_token(settings)
    with bound(settings) as listener:
        host, port = listener.getsockname()[:2]
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        app = server.streamable_http_app(
            streamable_http_path=PATH,
            max_request_body_size=LARGEST_REQUEST,
            transport_security=TransportSecuritySettings(
                # of names that stand for further addresses the guard around it knows
                enable_dns_rebinding_protection=is_loopback(settings.host) and not settings.allow_hosts,
                allowed_hosts=[place, f"localhost:{port}"],
                allowed_origins=[],  # no page of any site asks
            ),
        )
        config = bounded_config(guarded(app, settings, port), timeout_graceful_shutdown=3, lifespan="on")
        if isinstance(jobs, OwnJobs):
            jobs.open()
        listening = uvicorn.Server(config)

        async def serve() -> None:
            try:
                await listening.serve(sockets=[listener])
            finally:
                await jobs.close()

        with ending_quietly(listening):
            told(f"listening on http://{place}{PATH}")
            asyncio.run(serve())
