"""Tests of ``lmms_eval.tasks.lm_eval.config``."""

from __future__ import annotations

from typing import Any

import pytest

from lmms_eval.errors import TaskError
from lmms_eval.tasks.lm_eval.config import generation_kwargs, lm_eval_config, sent_generation
from tests.cases import for_each

WHOLE = {"task": "t", "dataset_path": "json", "test_split": "test", "doc_to_text": "q"}


@for_each(
    ("changes", "message"),
    [
        ({"use_prompt": "promptsource:*"}, "use_prompt.*doc_to_text"),
        ({"fewshot_config": {"sampelr": "first_n"}}, "fewshot_config.*'sampelr'"),
        ({"dataset_path": ""}, "dataset_path"),
        ({"gen_prefixx": "A"}, "unknown key 'gen_prefixx'.*'gen_prefix'"),
        ({"repeats": 0}, "repeats"),
        ({"unsafe_code": "perhaps"}, "unsafe_code"),
    ],
)
def test_a_wrong_key_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TaskError, match=rf"x\.yaml.*{message}"):
        lm_eval_config({**WHOLE, **changes}, "x.yaml")


def test_keys_that_other_tasks_lack() -> None:
    config = lm_eval_config(
        {**WHOLE, "metadata": [1], "dataset_name": 7, "should_decontaminate": True, "doc_to_image": ["image"]}, "x.yaml"
    )
    assert (config.metadata, config.dataset_name) == ({"_metadata": [1]}, "7")
    assert config.doc_to_visual == [["image"]] and not config.should_decontaminate
    assert lm_eval_config({**WHOLE, "dataset_path": "", "custom_dataset": len}, "x.yaml").custom_dataset is len


@for_each(
    ("stated", "sent"),
    [
        (None, {"temperature": 0.0, "do_sample": False, "until": ["\n\n"], "max_new_tokens": 256}),
        ({"max_gen_toks": 9, "max_new_tokens": 7}, {"until": ["\n\n"], "max_new_tokens": 9}),
        ({"max_tokens": 3, "max_completion_tokens": 5, "until": []}, {"until": [], "max_new_tokens": 3}),
        ({"until": ["\n"], "temperature": 1}, {"until": ["\n"], "temperature": 1.0, "max_new_tokens": 256}),
    ],
)
def test_generation_options(stated: Any, sent: dict[str, Any]) -> None:
    made = sent_generation(generation_kwargs(lm_eval_config({**WHOLE, "generation_kwargs": stated}, "x.yaml")))
    assert made == sent
