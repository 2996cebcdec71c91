"""Names and addresses of hosts."""

from __future__ import annotations

import ipaddress

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine's loopback interface, which no other machine reaches.

    No name is looked up: of names only ``localhost`` counts. An IPv6 address may have a zone, or hold an IPv4 one.
    """
    try:
        return host in LOOPBACK or ipaddress.ip_address(host.partition("%")[0].removeprefix("::ffff:")).is_loopback
    except ValueError:
        return False
