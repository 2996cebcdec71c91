"""Engines, each started when a test first asks for it. Run by ``make test-engines``; elsewhere vLLM is absent."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.models.hf.options import EMBEDDED, model_location
from lmms_eval.models.registry import ModelRegistry
from tests.engines.models import ENGINE, ROOT, environment, smollm2, vllm_server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if importlib.util.find_spec("vllm") is not None:
        return
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="vllm is not installed: make test-engines"))


@pytest.fixture(scope="session", autouse=True)
def _environment() -> None:
    import torch

    os.environ.update(environment())
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def smol(_environment: None) -> Path:
    """SmolLM2-135M-Instruct."""
    return smollm2(ROOT / "build" / "engines" / "smollm2")


@pytest.fixture(scope="session")
def embedded() -> Path:
    """The vision-language model that the package ships."""
    return Path(model_location(EMBEDDED))


def build(name: str, **arguments: Any) -> Any:
    return ModelRegistry().build(name, arguments)[0]


@pytest.fixture(scope="session")
def vllm_vision(_environment: None, embedded: Path) -> Iterator[Any]:
    model = build("vllm", model=str(embedded), max_frames_num=5, **ENGINE)
    yield model
    model.close()


@pytest.fixture(scope="session")
def vision_server(_environment: None, embedded: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with vllm_server(embedded, tmp_path_factory.mktemp("server") / "log") as url:
        yield url


@pytest.fixture(scope="session")
def vllm_text(_environment: None, smol: Path) -> Iterator[Any]:
    model = build("vllm", model=str(smol), **ENGINE)
    yield model
    model.close()


@pytest.fixture(scope="session")
def text_server(_environment: None, smol: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with vllm_server(smol, tmp_path_factory.mktemp("server") / "log") as url:
        yield url
