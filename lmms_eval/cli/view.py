"""``lmms-eval view``: shows runs as pages, also while they are running."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from lmms_eval.cli.arguments import add_media_flags, add_redact_flag, add_verbosity, command_parser
from lmms_eval.cli.output import announce_page, emit


def run(arguments: Sequence[str]) -> int:
    parser = command_parser("view")
    parser.add_argument("folder", metavar="DIR", help="output folder of runs: running, ended, or not yet started")
    parser.add_argument(
        "--port", type=int, default=0, metavar="N", help="port to serve on, on this machine; default: any free one"
    )
    parser.add_argument("--no_browser", action="store_true", help="print the address without opening a browser")
    add_media_flags(parser)
    add_redact_flag(parser)
    add_verbosity(parser)
    given = parser.read(arguments)
    from lmms_eval.http.guard import Guard
    from lmms_eval.viewer.live.app import HOST, ViewServer, listen, live_app
    from lmms_eval.viewer.live.watch import Watch
    from lmms_eval.viewer.page import ReportOptions

    options = ReportOptions(
        media="none" if given.no_media else given.media,
        redact=frozenset(given.redact),
        allowed=tuple(given.allow_path),
    )
    with closing(listen(given.port)) as listening, Watch(Path(given.folder).expanduser(), options) as watch:
        port = listening.getsockname()[1]
        guard = Guard(str(port))
        address = f"http://{HOST}:{port}/?{guard.token}"
        app = live_app(watch, guard, lambda: server.should_exit)
        server = ViewServer(app, lambda: announce_page("view", address, port, given.no_browser))
        server.run_on(listening)
    emit("the view has ended")
    return 0
