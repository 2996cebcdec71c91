"""Connections that hold a server up: every command that serves, as a process of its own."""

from __future__ import annotations

import importlib.util
import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.server.page.conftest import page_of
from tests.server.process import running_server
from tests.viewer.live.conftest import view_of

OPEN, PATIENCE_S = 1000, 60.0
SLOW_HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "


@contextmanager
def _served(command: str, folder: Path) -> Iterator[str]:
    """An address that is answered while the block lasts."""
    if command == "view":
        with view_of(folder, "--no_browser") as view:
            yield view.root
    elif command == "ui":
        with page_of(folder / "server", "--no_browser") as page:
            yield page.root
    elif command == "mcp":
        from tests.server.tools.sessions import http_server

        with http_server("--folder", str(folder / "server")) as url:
            yield url
    else:
        with running_server(folder / "server") as server:
            yield str(server.client.base_url)


@pytest.mark.parametrize("command", ["view", "ui", "serve", "mcp"])
def test_a_thousand_connections_that_say_nothing_are_ended(command: str, tmp_path: Path) -> None:
    if command == "mcp" and importlib.util.find_spec("mcp") is None:
        pytest.skip("the package mcp is not installed")
    with _served(command, tmp_path) as root:
        place = (str(urlsplit(root).hostname), int(urlsplit(root).port or 0))
        connections = [socket.create_connection(place, timeout=PATIENCE_S) for _ in range(OPEN)]
        try:
            for connection in connections[::2]:
                _send(connection, SLOW_HEAD)
            assert httpx.get(root, trust_env=False, timeout=PATIENCE_S).status_code < 500
            assert _open(connections) == 0
        finally:
            for connection in connections:
                connection.close()


def _open(connections: list[socket.socket]) -> int:
    """Count the connections that the server has not ended after a while; some of them send on, byte by byte."""
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            if connection.fileno() >= 0:
                selector.register(connection, selectors.EVENT_READ)
        deadline = time.monotonic() + PATIENCE_S
        while selector.get_map() and time.monotonic() < deadline:
            for key, _ in selector.select(0.5):
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                if not _received(connection):
                    selector.unregister(connection)
                    connection.close()
            for connection in connections[::50]:
                if connection.fileno() >= 0:
                    _send(connection, b"x")
        return len(selector.get_map())


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(4096)
    except OSError:
        return b""


def _send(connection: socket.socket, data: bytes) -> None:
    with suppress(OSError):  # ended meanwhile
        connection.sendall(data)
