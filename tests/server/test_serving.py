"""Serving ends by a signal, whenever it comes."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

from lmms_eval.server.serving import serve
from lmms_eval.server.settings import ServerSettings


def test_a_signal_in_the_moment_in_which_the_address_is_told_ends_the_server(tmp_path: Path) -> None:
    later = threading.Timer(30, os.kill, (os.getpid(), signal.SIGTERM))
    later.daemon = True
    later.start()
    told: list[str] = []

    def tell(line: str) -> None:
        told.append(line)
        signal.raise_signal(signal.SIGINT)

    serve(ServerSettings(folder=tmp_path, port=0), tell)
    assert told and later.is_alive()
    later.cancel()
