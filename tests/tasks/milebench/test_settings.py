from __future__ import annotations

from typing import Any

import pytest

from lmms_eval.errors import TaskError
from lmms_eval.tasks.milebench.settings import Settings
from tests.cases import for_each


def test_settings_of_other_models_are_passed_over() -> None:
    made = Settings.of({"qwen": {"prompt_mode": "x"}, "combine_image": 2, "adversarial": True})
    assert made == Settings(combine_image=2, adversarial=True)
    assert Settings.of(None) == Settings()
    assert made.folder is None
    folder = Settings(data_folder="demo").folder
    assert folder is not None and folder.name == "demo" and folder.is_dir()


@for_each(
    ("given", "message"),
    [
        ({"combine": 1}, "no task option 'combine'; there is: prompt_mode, combine_image"),
        ({"prompt_mode": "other"}, "official or index"),
        ({"combine_image": -1}, "a number of sheets"),
        ({"combine_image": True}, "a number of sheets"),
        ({"adversarial": "yes"}, "true or false"),
        ({"font_size": 0}, "from 1 on"),
        ({"max_context_len": 1.5, "n_tokens_per_image": 1, "tokenizer": "words"}, "max_context_len must be a whole"),
        ({"max_context_len": 100}, "give all or none"),
        ({"tokenizer": "words"}, "give all or none"),
    ],
)
def test_wrong_settings_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        Settings.of(given)


@for_each(
    ("given", "variant"),
    [
        ({}, ""),
        ({"max_context_len": 9, "n_tokens_per_image": 1, "tokenizer": "words"}, ""),
        ({"adversarial": True}, "adversarial"),
        ({"data_folder": "demo", "combine_image": 2, "prompt_mode": "index"}, "demo-combined_2-pictures_by_index"),
    ],
)
def test_the_variant_keeps_other_data_and_prompts_apart(given, variant) -> None:
    assert Settings.of(given).variant == variant
