from __future__ import annotations

import errno
import socket

import pytest

from lmms_eval.http.bounds import listening


def test_a_port_is_used_once_and_is_free_again_afterwards() -> None:
    with listening("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            pass
        with pytest.raises(OSError) as raised:
            listening("127.0.0.1", port)
        assert raised.value.errno == errno.EADDRINUSE
    listening("127.0.0.1", port).close()


def test_a_host_without_an_address() -> None:
    with pytest.raises(socket.gaierror):
        listening("no.such.host.invalid", 0)
