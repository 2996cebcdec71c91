"""The address of a page that this machine serves, told to who started it."""

from __future__ import annotations

import os
import socket
import threading
import webbrowser

from lmms_eval.cli.output import emit


def tell_address(what: str, address: str, port: int, no_browser: bool) -> None:
    """Print the address, and open it where a browser can be seen.

    Args:
        what: is served.
        address: with its token.
        port: on this machine.
        no_browser: open nothing.
    """
    from lmms_eval.viewer.live.serving import can_open_browser, ssh_hint

    emit(f"{what}: {address}", masks=False)
    if no_browser or not can_open_browser(os.environ):
        emit(f"from another machine: {ssh_hint(os.environ, port, socket.gethostname())}, then open the address there")
    else:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    emit("Ctrl-C ends it")
