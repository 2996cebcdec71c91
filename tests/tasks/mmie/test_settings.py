from __future__ import annotations

from typing import Any

import pytest

from lmms_eval.errors import TaskError
from lmms_eval.tasks.mmie.settings import Settings
from tests.cases import for_each


def test_settings_of_a_mapping() -> None:
    settings = Settings.of({"view": "full_text", "max_images": 6, "qwen": {"view": "other"}})
    assert (settings.view_options.mode, settings.view_options.max_images) == ("full_text", 6)
    assert Settings.of(None) == Settings()
    assert Settings().folder is None
    folder = Settings(data_folder="demo").folder
    assert folder is not None and folder.name == "demo" and folder.parent.name == "mmie"


@for_each(
    ("given", "words"),
    [
        ({"veiw": "official"}, "no task option 'veiw'"),
        ({"view": "half"}, "official or full_text"),
        ({"max_images": 0}, "whole number from 1 on"),
        ({"strict_images": "yes"}, "true or false"),
        ({"category_by": "field"}, "id or name"),
        ({"ask_pictures": 3}, "true, false or a text"),
    ],
)
def test_what_does_not_fit(given: dict[str, Any], words: str) -> None:
    with pytest.raises(TaskError, match=words):
        Settings.of(given)
