"""Tiny models, built once for a session, and the setting that keeps tests off other cores."""

from pathlib import Path

import pytest
import torch

from examples.build_tiny_model import build_tiny_vlm

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_folders(tmp_path_factory):
    """Folder of a tiny model by architecture."""
    root = tmp_path_factory.mktemp("tiny_models")
    return {name: build_tiny_vlm(root / name, architecture=name) for name in ("idefics3", "qwen2_vl", "llava")}


@pytest.fixture(scope="session")
def tiny(tiny_folders) -> Path:
    """Folder of the default tiny model."""
    return tiny_folders["idefics3"]
