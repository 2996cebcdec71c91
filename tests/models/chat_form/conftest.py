import pytest

from tests.models.chat_form import folders


@pytest.fixture(scope="session")
def modules_cache(tmp_path_factory):
    """Where transformers copies the code of checkpoints: not into the user's cache."""
    from transformers import dynamic_module_utils

    patch = pytest.MonkeyPatch()
    patch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path_factory.mktemp("modules")))
    yield
    patch.undo()


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory, modules_cache):
    """Folder of a checkpoint by the name of its code."""
    place, made = tmp_path_factory.mktemp("checkpoints"), {}

    def folder(name, **config):
        key = "-".join([name, *config])
        if key not in made:
            made[key] = folders.write(place / key, name, **config)
        return made[key]

    return folder
