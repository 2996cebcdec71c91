"""Chromium for the site's pages."""

from __future__ import annotations

from tests.viewer.conftest import chromium, watched

__all__ = ["chromium", "watched"]
