"""A tokenizer with a chat template, and engines in place of the real ones."""

from __future__ import annotations

import sys

import pytest

from tests.models.offline.engines import Recorder, fake_sglang, vllm_modules, write_tokenizer


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("transformers", reason="transformers is not installed")
    return write_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    for name, module in {**vllm_modules(recorder), "sglang": fake_sglang(recorder)}.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.setenv("VLLM_ENGINE_READY_TIMEOUT_S", "60")
    return recorder
