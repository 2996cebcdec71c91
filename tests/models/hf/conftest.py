"""Tiny models, built once for a session, and the settings that keep tests off the network and off other cores."""

import os
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"

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
