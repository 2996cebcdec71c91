"""``lmms-eval mcp`` (``lmms-eval-mcp``): an MCP server with evaluations as tools."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from lmms_eval.cli.arguments import command_parser
from lmms_eval.cli.output import complain
from lmms_eval.cli.serve import add_address_flags, add_server_flags, open_settings
from lmms_eval.errors import UsageError

_HTTP = ("http", "streamable-http")


def run(arguments: Sequence[str]) -> int:
    parser = command_parser("mcp")
    add = parser.add_argument
    add(
        "--transport",
        default="stdio",
        choices=("stdio", *_HTTP, "sse"),
        metavar="stdio|http",
        help="serve the client that started this command (stdio), or several (http); default: stdio",
    )
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="http: address to listen on; default: %(default)s")
    add(
        "--port",
        type=int,
        default=8001,
        metavar="N",
        help="http: port to listen on; 0: any free port; default: %(default)s",
    )
    add("--server", metavar="URL", help="address of a running lmms-eval serve that does the work")
    add_address_flags(parser)
    add_server_flags(parser)
    given = parser.read(arguments)
    if given.transport == "sse":
        raise UsageError("--transport sse: the protocol has replaced it by streamable HTTP: --transport http")
    if given.server and not given.server.startswith(("http://", "https://")):
        raise UsageError(f"--server {given.server}: give an address, such as http://localhost:8000")
    from lmms_eval.server.mcp.application import require_mcp, serve_http, serve_stdio

    require_mcp()
    from lmms_eval.server.mcp.application import make_server
    from lmms_eval.server.mcp.jobs import Jobs, OwnJobs, ServerJobs, try_to_open
    from lmms_eval.server.mcp.names import Names
    from lmms_eval.server.mcp.toolbox import Toolbox

    settings = open_settings(given)
    if given.transport == "stdio":
        settings = dataclasses.replace(settings, leave_running=True)
    jobs: Jobs = ServerJobs(given.server) if given.server else OwnJobs(settings)
    server = make_server(Toolbox(jobs, Names(settings.include_paths, settings.plugins)))
    if given.transport == "stdio":
        try_to_open(jobs)
        serve_stdio(server, jobs)
    else:
        serve_http(server, jobs, settings, complain)
    return 0
