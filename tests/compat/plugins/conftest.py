from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.plugins.kit import Plugins, forgotten


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plugins]:
    """Commands set up logging and export VERBOSITY: both are put back."""
    monkeypatch.setenv("VERBOSITY", "INFO")
    for name in ("OPENAI_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    own = logging.getLogger("lmms_eval")
    before = own.handlers[:], own.level, own.propagate
    with forgotten():
        yield Plugins(tmp_path, monkeypatch)
    own.handlers[:], own.level, own.propagate = before
