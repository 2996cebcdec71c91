"""Serving: the address is taken, the application answers until it is told to end."""

from __future__ import annotations

import errno
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lmms_eval.errors import MissingOptionalDependencyError, UsageError
from lmms_eval.http.guard import Guard, is_loopback
from lmms_eval.http.rates import Rates
from lmms_eval.server.settings import TOKEN_VARIABLE, ServerSettings
from lmms_eval.utils.redaction import learn_secrets

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

log = logging.getLogger(__name__)
METHODS = ("GET", "HEAD", "POST", "DELETE")
_GUESSES, _GUESSES_PER_S = 20, 0.2
"""Wrong tokens of one client: at once, and each second from then on."""
_EXTRA = "the server needs further packages: pip install 'lmms_eval[server]'"


def serve(settings: ServerSettings, told: Callable[[str], None] = log.info) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        settings: the server's.
        told: is given the line that says where the server listens.

    Raises:
        UsageError: the address cannot be taken, or the folder not be used.
        MissingOptionalDependencyError: the extra is not installed.
    """
    try:
        import uvicorn

        from lmms_eval.http.connections import bounded_config
        from lmms_eval.server.app import make_app
        from lmms_eval.server.service import Service
    except ImportError as error:
        raise MissingOptionalDependencyError(f"{_EXTRA} ({error})") from error
    check_token(settings)
    with bound(settings) as listener:
        host, port = listener.getsockname()[:2]
        app = guarded(make_app(Service(settings)), settings, port)
        server = uvicorn.Server(bounded_config(app, timeout_graceful_shutdown=5, lifespan="on"))
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        with ending_quietly(server):
            told(f"listening on http://{place}, jobs in {settings.folder.absolute()}")
            server.run(sockets=[listener])


def check_token(settings: ServerSettings) -> None:
    """Keep the token out of all that is written. Raises ``UsageError`` where others could ask, and there is none."""
    if not is_loopback(settings.host) and not settings.token:
        port = settings.port or "PORT"
        raise UsageError(
            f"--host {settings.host}: whoever reaches this address could run evaluations: give a token "
            f"(--token_file FILE, or {TOKEN_VARIABLE}), or leave the address out and reach the server through a "
            f"tunnel (ssh -L {port}:localhost:{port} HOST)"
        )
    learn_secrets({"token": settings.token}, os.environ)


def guarded(app: ASGIApp, settings: ServerSettings, port: int) -> ASGIApp:
    """Return an application that answers those alone who may ask."""
    from lmms_eval.http.guarded import Guarded, json_answer

    return Guarded(app, guard_of(settings, port), json_answer, Rates(_GUESSES, _GUESSES_PER_S))


def guard_of(settings: ServerSettings, port: int) -> Guard:
    """Make the rules by which a server answers."""
    is_open = not is_loopback(settings.host)
    own = {settings.host, socket.gethostname()} if is_open else set()
    names = frozenset(name.lower().rstrip(".") for name in (*own, *settings.allow_hosts))
    return Guard(str(port), settings.token, "serve", METHODS, is_page=False, names=names, any_address=is_open)


@contextmanager
def ending_quietly(server: uvicorn.Server) -> Iterator[None]:
    """Have a signal end the server and nothing else: from now on, and when uvicorn sends it once more at its end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def bound(settings: ServerSettings) -> socket.socket:
    """Take the address. Raises ``UsageError``."""
    place = f"{settings.host}:{settings.port}"
    try:
        # With the protocol named, asyncio sends small answers at once; else they wait for the client's 40 ms.
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise UsageError(f"{place}: no address of this machine: {error}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise UsageError(f"{place} is in use: another process listens there; choose another --port") from error
        raise UsageError(f"cannot listen on {place}: {error.strerror or error}") from error
    return listener
