"""The examples of ``docs/model_guide.md`` run as they are printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lmms_eval.errors import ModelError
from lmms_eval.models.building import BuildOptions
from lmms_eval.models.registry import ModelRegistry
from tests.models.fakes import FakeTask, answers

GUIDE = Path(__file__).parents[1] / "docs" / "model_guide.md"
BLOCK = re.compile(r"```(python|toml)\n(.*?)```", re.DOTALL)
FILE = re.compile(r"# my_models/(\w+)\.py\n")
DOCS = [{"question": "Which colour?", "answer": "red", "choices": ["a", "bbb"]}, {"question": "Why?", "answer": "b"}]


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelRegistry:
    """The guide's package, installed with its entry point."""
    package = tmp_path / "my_models"
    info = tmp_path / "my_models-1.0.dist-info"
    package.mkdir()
    info.mkdir()
    (package / "__init__.py").write_text("")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my_models\nVersion: 1.0\n")
    for language, text in BLOCK.findall(GUIDE.read_text(encoding="utf-8")):
        if language == "toml":
            name, target = re.findall(r'^(\w+) = "(.*)"$', text, re.MULTILINE)[0]
            (info / "entry_points.txt").write_text(f"[lmms_eval.models]\n{name} = {target}\n")
        else:
            match = FILE.match(text)
            assert match, f"an example does not name its file: {text[:60]}"
            (package / f"{match[1]}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    return ModelRegistry()


def test_streaming_example(registry: ModelRegistry) -> None:
    model, _ = registry.build("parrot", "greeting=Seen:", BuildOptions(batch_size=2, device="cpu"))
    task = FakeTask(DOCS)
    short = task.request(1, generation={"max_new_tokens": 2})
    found = answers(model, [task.request(0), short, *task.choice_requests(0)[1:]])
    assert found["fake/0/0/0/0"].text == "Seen: 0 pictures. Which colour?"
    assert (found["fake/1/0/0/0"].text, found["fake/1/0/0/0"].finish_reason) == ("Seen: 0", "length")
    assert found["fake/0/0/0/1"].loglikelihood == -4.0
    empty = answers(model, [task.request(0, context="")])["fake/0/0/0/0"]
    assert empty.error is not None and empty.error.kind == "bad_request"
    assert model.identity() == {"greeting": "Seen:"} and model.concurrency == 2


def test_streaming_example_refuses_wrong_arguments(registry: ModelRegistry) -> None:
    with pytest.raises(ModelError, match="did you mean greeting"):
        registry.build("echo", "greting=Hello")
    with pytest.raises(ModelError, match="batch_size must be at least 1"):
        registry.build("echo", "batch_size=0")


def test_class_example(registry: ModelRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.list_models()
    __import__("my_models.shout")
    model, found = registry.build("shout", "mark=?", BuildOptions(batch_size=2))
    assert found.kind == "chat" and model.concurrency == 16
    task = FakeTask(DOCS)
    model.attach_tasks([task])
    said = answers(model, task.requests())
    assert [response.text for response in said.values()] == ["WHICH COLOUR??", "WHY??"]
