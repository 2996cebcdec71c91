"""The examples of ``docs/model_guide.md`` run as they are printed."""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from lmms_eval.errors import ModelError
from lmms_eval.models.building import BuildOptions
from lmms_eval.models.registry import ModelRegistry
from tests import forks
from tests.models.fakes import FakeTask, answers

GUIDE = Path(__file__).parents[1] / "docs" / "model_guide.md"
BLOCK = re.compile(r"```(python|toml)\n(.*?)```", re.DOTALL)
COMMANDS = re.compile(r"```bash\n(.*?)```", re.DOTALL)
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
            (tmp_path / "pyproject.toml").write_text(text)
            [(name, target)] = tomllib.loads(text)["project"]["entry-points"]["lmms_eval.models"].items()
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


def test_the_package_of_the_guide_can_be_built(registry: ModelRegistry, tmp_path: Path) -> None:
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text())
    assert project["build-system"]["build-backend"] == "hatchling.build"
    assert project["project"]["name"] and project["project"]["version"]
    assert (tmp_path / project["project"]["name"]).is_dir()  # where the build back end looks by itself


def test_the_commands_of_the_guide_evaluate_both_models(
    registry: ModelRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    lines = [line for text in COMMANDS.findall(GUIDE.read_text(encoding="utf-8")) for line in text.splitlines()]
    runs = [shlex.split(line)[shlex.split(line).index("lmms-eval") + 1 :] for line in lines if " --model " in line]
    assert [words[words.index("--model") + 1] for words in runs] == ["sizes", "echo", "echo", "shout"]
    (tmp_path / "examples").symlink_to(GUIDE.parents[1] / "examples")
    for words in runs:
        path = "" if "sizes" in words else str(tmp_path)  # given by its file
        done = forks.run("-m", "lmms_eval", *words, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path})
        assert done.returncode == 0, done.stderr
        assert any(part in done.stdout for part in ("1 model checked: OK", "|megabench_demo|", "|colours")), done.stdout
    (samples,) = (tmp_path / "out").glob("*_samples_colours.jsonl")
    answers = [str(json.loads(line)["filtered_resps"]) for line in samples.read_text().splitlines()]
    assert all(".png" in answer and "(" in answer for answer in answers), answers
