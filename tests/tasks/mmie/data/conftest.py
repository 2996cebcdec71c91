from pathlib import Path

import pytest

from lmms_eval.tasks.mmie.data import files


@pytest.fixture(autouse=True)
def no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the data sets of this machine."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.delenv(files.ROOT_VARIABLE, raising=False)
