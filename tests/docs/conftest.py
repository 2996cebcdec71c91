"""A page of Chromium for the site."""

from __future__ import annotations

from tests.viewer.conftest import watched

__all__ = ["watched"]
