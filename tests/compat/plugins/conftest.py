from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.plugins.kit import Plugins, forgotten


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plugins]:
    for name in ("OPENAI_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with forgotten():
        yield Plugins(tmp_path, monkeypatch)
