"""Packages that may be absent (found without an import, which each process of tests would pay for), and IPv6."""

from __future__ import annotations

import socket
from importlib.util import find_spec

import pytest


def needs(package: str, reason: str = "") -> None:
    """Skip the module that calls it unless the package is installed."""
    if find_spec(package) is None:
        pytest.skip(reason or f"{package} is not installed", allow_module_level=True)


def needs_ipv6() -> None:
    """Skip the test that calls it unless servers can listen on ``::1``."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError as error:
        pytest.skip(f"this machine has no IPv6 on loopback: {error}")
