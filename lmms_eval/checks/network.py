"""Refusal of connections while foreign code is checked: nothing is downloaded, and no service is asked."""

from __future__ import annotations

import ipaddress
import sys
from typing import Any

REFUSED = "a check opens no connection to other machines"
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
"""Environment in which the hub's libraries look into their caches only."""
_EVENTS = {"socket.connect": 1, "socket.getaddrinfo": 0, "socket.gethostbyname": 0, "socket.sendto": 1}
"""Audit events of the interpreter, and the place of the host or address in their arguments."""


class RefusedConnectionError(ConnectionError):
    """Code that is being checked wanted another machine."""


def refuse_connections() -> None:
    """Refuse, for the rest of this process, every connection that does not stay on this machine."""
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    place = _EVENTS.get(event)
    if place is None:
        return
    address = arguments[place]
    host = address[0] if isinstance(address, tuple) else address if place == 0 else None
    if host is not None and not is_this_machine(host):
        shown = host.decode(errors="replace") if isinstance(host, bytes) else host
        raise RefusedConnectionError(f"{REFUSED} ({shown})")


def is_this_machine(host: Any) -> bool:
    """Tell whether a host's name or number is that of the loopback interface; no name is looked up."""
    text = host.decode(errors="replace") if isinstance(host, bytes | bytearray) else str(host)
    if text in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(text.partition("%")[0]).is_loopback
    except ValueError:
        return False
