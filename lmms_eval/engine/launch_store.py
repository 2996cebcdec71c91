"""The key-value store of ``--processes``: the command that starts the processes hosts it, on loopback.

It has the five operations of ``torch.distributed.Store`` that a ``Team`` uses and needs no torch. A message is one JSON
line (operation, keys, number) and, behind it, the bytes of a value; the framing and the proof of the common key are
``multiprocessing.connection``'s, of which only the forms that unpickle nothing are used.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge
from types import TracebackType

import orjson

from lmms_eval.utils.launch import STORE_PORT, STORE_TOKEN

HOST = "127.0.0.1"


class StoreServer:
    """Context in which the store is served by threads of this process."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._numbers: dict[str, int] = {}
        self._lock = threading.Lock()
        self._key = secrets.token_hex(32)
        self._listener = Listener((HOST, 0), "AF_INET", backlog=128)
        self._connections: list[Connection] = []
        self._is_closed = False

    @property
    def environment(self) -> dict[str, str]:
        """The variables that a process of the launch needs."""
        return {STORE_PORT: str(self._listener.address[1]), STORE_TOKEN: self._key}

    def __enter__(self) -> StoreServer:
        threading.Thread(target=self._accept, name="store", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closed = True
        with suppress(OSError):  # wakes the thread that accepts
            Client((HOST, self._listener.address[1])).close()
        self._listener.close()
        with self._lock:
            for connection in self._connections:
                _hang_up(connection)

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                connection = self._listener.accept()
            except OSError:  # one that went away
                continue
            with self._lock:
                self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), name="store", daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        with connection, suppress(OSError, EOFError, AuthenticationError):  # its process has ended, or a stranger
            # Here and not where connections are accepted: one that says nothing holds up nobody else.
            deliver_challenge(connection, self._key.encode())
            answer_challenge(connection, self._key.encode())
            while True:
                head, _, value = connection.recv_bytes().partition(b"\n")
                operation, keys, number = orjson.loads(head)
                with self._lock:
                    answer = self._answer(operation, keys, number, value)
                connection.send_bytes(answer)

    def _answer(self, operation: str, keys: list[str], number: int, value: bytes) -> bytes:
        """Carry an operation out; ``-`` where a value is wanted that is not there, else ``+`` and the result."""
        key = keys[0]
        match operation:
            case "set":
                self._values[key] = value
                return b"+"
            case "get":
                return b"+" + self._values[key] if key in self._values else b"-"
            case "add":
                self._numbers[key] = self._numbers.get(key, 0) + number
                return b"+%d" % self._numbers[key]
            case "delete":
                return b"+1" if self._values.pop(key, None) is not None else b"+"
            case _:
                return b"+1" if all(name in self._values for name in keys) else b"+"


def _hang_up(connection: Connection) -> None:
    """End a connection that another thread waits at: that thread closes it."""
    with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


class StoreClient:
    """A ``KeyValueStore`` that asks a ``StoreServer``; safe from several threads.

    Raises:
        OSError: the server has ended, or does not accept the key.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        try:
            self._connection = Client((HOST, int(environ[STORE_PORT])), authkey=environ[STORE_TOKEN].encode())
        except (EOFError, AuthenticationError) as error:
            raise ConnectionError(f"the launch's store refused the connection: {error}") from error
        self._lock = threading.Lock()

    def set(self, key: str, value: bytes) -> None:
        """Keep a value."""
        self._ask("set", [key], value=value)

    def get(self, key: str) -> bytes:
        """Read a value. Raises ``KeyError``: there is none."""
        return self._ask("get", [key])

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which begins at 0; returns the sum."""
        return int(self._ask("add", [key], amount))

    def delete_key(self, key: str) -> bool:
        """Forget a value; returns whether there was one."""
        return bool(self._ask("delete", [key]))

    def check(self, keys: list[str]) -> bool:
        """Tell if all of these values are there."""
        return bool(self._ask("check", keys))

    def _ask(self, operation: str, keys: list[str], number: int = 0, value: bytes = b"") -> bytes:
        try:
            with self._lock:
                self._connection.send_bytes(orjson.dumps([operation, keys, number]) + b"\n" + value)
                answer = self._connection.recv_bytes()
        except EOFError as error:
            raise ConnectionError("the launch's store has ended") from error
        if answer[:1] == b"-":
            raise KeyError(keys[0])
        return answer[1:]
