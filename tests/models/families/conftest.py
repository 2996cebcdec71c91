"""Folders of tiny models, each built when a test first asks for it."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"

import pytest

from .build import BUILDERS


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory):
    """From the name of a wrapper to the folder of a model of its architecture."""
    root, built = tmp_path_factory.mktemp("families"), {}

    def get(name):
        if name not in built:
            built[name] = BUILDERS[name](root / name)
        return built[name]

    return get
