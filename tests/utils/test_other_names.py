"""Names of other harnesses."""

from __future__ import annotations

import pytest

from lmms_eval.errors import UnknownNameError
from lmms_eval.models.registry import ModelRegistry
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.utils import other_names
from lmms_eval.utils.other_names import model_elsewhere, task_elsewhere
from tests.cases import for_each


def test_every_name_leads_to_one_that_exists() -> None:
    tasks, models = Catalogue(), ModelRegistry()
    for name, ours in other_names._VLMEVALKIT.items():
        assert tasks.entry(ours) is not None, name
    for ours, _ in (*other_names._LM_EVAL.values(), *other_names._INSPECT.values()):
        assert models.resolve(ours)


@for_each(
    ("name", "words"),
    [
        ("local-chat-completions", "did you mean openai --model_args base_url=URL,model=M? (lm-eval's name)"),
        ("openai/gpt-4o", "did you mean openai --model_args model=gpt-4o? (inspect_ai's name)"),
        ("hf/org/model", "did you mean hf --model_args pretrained=org/model? (inspect_ai's name)"),
    ],
)
def test_models(name: str, words: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        ModelRegistry().resolve(name)
    assert str(caught.value) == f"unknown model {name!r}; {words}"


@for_each("name", ["MMBench_DEV_EN", "mmbench_dev_en"])
def test_tasks(name: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        Catalogue().match([name])
    assert str(caught.value) == f"unknown task {name!r}; did you mean mmbench_en_dev? (VLMEvalKit's name)"


@for_each("name", ["", "/", "openai/", "/gpt-4o", "nobody/x", "\x1b[31m", "x" * 10_000])
def test_other_names_are_no_ones(name: str) -> None:
    assert model_elsewhere(name) is None and task_elsewhere(name) is None


def test_similar_names_are_found_whatever_their_case() -> None:
    assert "did you mean mmbench_en_dev" in str(UnknownNameError("task", "MMBENCH_EN_DEVV", ["mmbench_en_dev", "x"]))
