from pathlib import Path

import pytest

from lmms_eval.models.registry import ModelRegistry

from . import conformance
from .build import BUILDERS
from .named import NAMES

DOCUMENT = Path(__file__).parents[3] / "docs" / "models" / "conformance.md"


@pytest.mark.parametrize("name", BUILDERS)
def test_each_wrapper_does_what_the_table_says(folder_of, name):
    assert conformance.check(name, folder_of(name)) == conformance.expected(name)


def test_every_wrapper_is_asked():
    wrappers = {
        item.model_id
        for item in ModelRegistry().list_models()
        if ModelRegistry().resolve(item.model_id).class_path.startswith("lmms_eval.models.families.")
    }
    assert wrappers == {*BUILDERS, *NAMES}


def test_the_documented_table_is_the_one_that_the_tests_find(monkeypatch):
    """As found without torchvision and with num2words."""
    monkeypatch.setattr(conformance, "is_torchvision_available", lambda: False)
    monkeypatch.setattr(conformance, "is_num2words_available", lambda: True)
    table = conformance.table({name: conformance.expected(name) for name in BUILDERS})
    assert table in DOCUMENT.read_text()
