"""Packages that may be absent: tests are skipped without an import, which each process of tests would pay for."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


def needs(package: str, reason: str = "") -> None:
    """Skip the module that calls it unless the package is installed."""
    if find_spec(package) is None:
        pytest.skip(reason or f"{package} is not installed", allow_module_level=True)
