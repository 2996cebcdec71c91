"""``lmms-eval serve``: the evaluation server. Other servers share its flags."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval.cli.arguments import CommandParser, add_verbosity, command_parser, plugins_of_environment
from lmms_eval.cli.output import emit
from lmms_eval.utils.arguments import comma_list
from lmms_eval.utils.plugins import absolute_plugins

if TYPE_CHECKING:
    from lmms_eval.server.settings import ServerSettings


def run(arguments: Sequence[str]) -> int:
    parser = command_parser("serve")
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on; default: %(default)s"
    )
    parser.add_argument(
        "--port", type=int, default=8000, metavar="N", help="port to listen on; 0: any free port; default: %(default)s"
    )
    add_address_flags(parser)
    add_server_flags(parser)
    given = parser.read(arguments)
    from lmms_eval.server.app import serve

    serve(open_settings(given), emit)
    return 0


def open_settings(given: Namespace) -> ServerSettings:
    """Read the flags of ``add_server_flags`` and ``add_address_flags``. Raises ``ConfigError``."""
    from lmms_eval.server.settings import stated_token

    token = stated_token(given.token_file, os.environ)
    return replace(server_settings(given), token=token, allow_hosts=tuple(given.allow_host))


def server_settings(given: Namespace) -> ServerSettings:
    """Read the flags of ``add_server_flags``. Raises ``ConfigError``."""
    from lmms_eval.server.settings import ServerSettings, default_folder

    stated = {one.name: getattr(given, one.name) for one in fields(ServerSettings) if one.name in given}
    converted = {
        "folder": Path(given.folder).expanduser() if given.folder else default_folder(),
        "gpus": comma_list(given.gpus),
        "allow_paths": tuple(given.allow_path),
        "include_paths": tuple(str(Path(path).expanduser().absolute()) for path in given.include_path),
        "plugins": absolute_plugins((*plugins_of_environment(), *comma_list(given.plugins))),
        "data_root": str(Path(given.data_root).expanduser().absolute()) if given.data_root else None,
    }
    return ServerSettings(**stated | converted)


def add_address_flags(parser: CommandParser) -> None:
    """Add the flags that let a server answer other machines."""
    parser.add_argument(
        "--token_file",
        metavar="FILE",
        help="file with the token of all requests (or LMMS_EVAL_SERVER_TOKEN); needed beyond loopback",
    )
    parser.add_argument(
        "--allow_host",
        action="append",
        default=[],
        metavar="NAME",
        help="further host name that clients may use for the server; repeatable",
    )


def add_server_flags(parser: CommandParser) -> None:
    """Add the flags of a server, except for its address."""
    add = parser.add_argument
    add(
        "--folder",
        metavar="DIR",
        help="folder for the list of jobs and their files; default: ~/.local/share/lmms_eval/server",
    )
    add("--gpus", metavar="N,N", help="numbers of the GPUs that jobs may use")
    add(
        "--parallel",
        type=int,
        metavar="N",
        help="number of jobs that run at the same time; default: one for each GPU in --gpus, else 1",
    )
    add(
        "--max_completed_jobs",
        type=int,
        default=100,
        metavar="N",
        help="number of ended jobs that the list keeps; default: %(default)s",
    )
    add("--delete_files", action="store_true", help="also delete the files of ended jobs that leave the list")
    add(
        "--allow_path", action="append", default=[], metavar="DIR|URL",
        help="folder, or address of a service, that requests may name; default: none; repeatable",
    )  # fmt: skip
    add("--allow_code", action="store_true", help="let requests bring code: trust_remote_code, include_path, plugins")
    add("--allow_uploads", action="store_true", help="let requests upload results to the hub and trackers")
    add(
        "--submissions_per_minute",
        type=int,
        default=240,
        metavar="N",
        help="submissions that each client may make in a minute; default: %(default)s",
    )
    add(
        "--max_queued_jobs",
        type=int,
        default=10_000,
        metavar="N",
        help="largest number of jobs in the queue; default: %(default)s",
    )
    add(
        "--include_path",
        action="append",
        default=[],
        metavar="DIR",
        help="folder with more task YAML files; repeatable",
    )
    add("--plugins", metavar="NAME,NAME", help="packages with models and tasks, or files and folders with models")
    add("--data_root", metavar="DIR", help="folder with local data of benchmarks")
    add(
        "--grace",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="time that a cancelled run has to end before it is killed; default: %(default)g",
    )
    add("--leave_running", action="store_true", help="let running jobs continue when the server stops")
    add_verbosity(parser, "INFO")
