"""A tokenizer with a chat template, and engines in place of the real ones."""

from __future__ import annotations

import pytest

from tests.models.offline.engines import Recorder, stand_ins, write_tokenizer


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("transformers", reason="transformers is not installed")
    return write_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    stand_ins(monkeypatch, recorder)
    return recorder
