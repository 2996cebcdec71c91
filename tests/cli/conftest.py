from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _own_logging_and_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Commands set up logging and export VERBOSITY: put both back."""
    monkeypatch.setenv("VERBOSITY", "INFO")
    own = logging.getLogger("lmms_eval")
    before = own.handlers[:], own.level, own.propagate
    yield
    own.handlers[:], own.level, own.propagate = before
