"""``lmms-eval ui`` (``lmms-eval-ui``): the evaluation server with its page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing

from lmms_eval.cli.arguments import command_parser
from lmms_eval.cli.output import announce_page, emit
from lmms_eval.cli.serve import add_server_flags, server_settings
from lmms_eval.errors import MissingOptionalDependencyError


def run(arguments: Sequence[str]) -> int:
    parser = command_parser("ui")
    parser.add_argument(
        "--port",
        type=int,
        metavar="N",
        help="port to serve on, on this machine; default: LMMS_SERVER_PORT, else any free one",
    )
    parser.add_argument("--no_browser", action="store_true", help="print the address without opening a browser")
    add_server_flags(parser)
    given = parser.read(arguments)
    try:
        from lmms_eval.http.guard import Guard
        from lmms_eval.server.app import METHODS
        from lmms_eval.server.page.endpoints import page_app
        from lmms_eval.server.service import Service
        from lmms_eval.server.settings import stated_port
        from lmms_eval.viewer.live.app import HOST, ViewServer, listen
    except ModuleNotFoundError as error:
        raise MissingOptionalDependencyError(
            f"the page needs further packages: pip install 'lmms_eval[server]' ({error})"
        ) from error
    given.host = HOST
    given.port = stated_port(os.environ) if given.port is None else given.port
    with closing(listen(given.port)) as listening:
        given.port = listening.getsockname()[1]
        service = Service(server_settings(given))
        guard = Guard(str(given.port), command="ui", methods=METHODS)
        service.start()
        try:
            address = f"http://{HOST}:{given.port}/?{guard.token}"
            with page_app(service, guard, lambda: server.should_exit) as app:
                server = ViewServer(app, lambda: announce_page("page", address, given.port, given.no_browser))
                server.run_on(listening)
        finally:
            service.stop()
    emit("the page has ended; running evaluations resume when it is started again")
    return 0
