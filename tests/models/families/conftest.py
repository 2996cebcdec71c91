"""Folders of tiny models, each built when a test first asks for it."""

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
