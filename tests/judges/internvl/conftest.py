import pytest

from tests.judges.internvl import checkpoint
from tests.models.chat_form.conftest import modules_cache as modules_cache
from tests.models.families.build import BUILDERS


@pytest.fixture(scope="session")
def remote_folder(tmp_path_factory, modules_cache):
    return checkpoint.write(tmp_path_factory.mktemp("remote") / "stub-chat")


@pytest.fixture(scope="session")
def native_folder(tmp_path_factory):
    return BUILDERS["internvl_hf"](tmp_path_factory.mktemp("native") / "internvl")


@pytest.fixture
def pictures(tmp_path):
    from PIL import Image

    paths = []
    for number, size in enumerate([(40, 40), (90, 40), (20, 100)]):
        path = tmp_path / f"{number}.png"
        Image.new("RGB", size, (60 * number, 90, 200)).save(path)
        paths.append(str(path))
    return paths
