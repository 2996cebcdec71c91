"""What ``WandbLogger`` sends, with a module of wandb's public names in its place."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from lmms_eval.errors import MissingOptionalDependencyError
from lmms_eval.loggers import WandbLogger
from lmms_eval.utils.redaction import learn_secrets

RESULTS = {
    "results": {"t": {"alias": "t", "acc,none": 0.5, "acc_stderr,none": 0.1, "other,strict": 2, "left,none": None}},
    "configs": {"t": {"task": "t"}},
    "versions": {"t": 1.0},
    "n-shot": {"t": 0},
    "config": {"model": "m"},
    "samples": {"t": [{"doc_id": 0}]},
}


class Run:
    def __init__(self) -> None:
        self.logged: dict[str, Any] = {}
        self.steps: list[int | None] = []
        self.artifacts: dict[str, str] = {}
        self.config, self.summary = {}, {}

    def log(self, values: dict[str, Any], step: int | None = None) -> None:
        self.logged |= values
        self.steps.append(step)

    def log_artifact(self, artifact: Any) -> None:
        self.artifacts[artifact.name] = artifact.text


class Artifact:
    def __init__(self, name: str, type: str) -> None:
        self.name, self.type, self.text = name, type, ""

    @contextlib.contextmanager
    def new_file(self, name: str, mode: str, encoding: str) -> Iterator[io.StringIO]:
        file = io.StringIO()
        yield file
        self.text = file.getvalue()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    made = Run()
    module = SimpleNamespace(
        run=None, init=lambda **kwargs: made.__dict__.update(arguments=kwargs) or made, Artifact=Artifact,
        Table=lambda columns, data: {"columns": columns, "data": data}, __spec__=None,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "wandb", module)
    return made


def test_numbers_texts_settings_and_the_document(run: Run) -> None:
    logger = WandbLogger(project="p", step=7)
    logger.post_init(RESULTS)
    logger.log_eval_result()
    assert run.arguments == {"project": "p"} and set(run.steps) == {7}  # type: ignore[attr-defined]
    assert {name: run.logged[name] for name in ("t/acc", "t/acc_stderr", "t/other,strict")} == {
        "t/acc": 0.5, "t/acc_stderr": 0.1, "t/other,strict": 2
    }  # fmt: skip
    assert run.summary == {"t/alias": "t"} and run.config["cli_configs"] == {"model": "m"}
    assert run.logged["evaluation/eval_results"]["data"][0] == ["t", "1.0", "0", "acc,none", 0.5]
    assert "samples" not in json.loads(run.artifacts["results"])


def test_samples_as_table_and_lines_without_secrets(run: Run) -> None:
    learn_secrets({"api_key": "very-secret-value"}, {})
    logger = WandbLogger()
    logger.log_eval_samples({"t": [{"doc_id": 0, "resps": "says very-secret-value", "acc": 1.0}, {"doc_id": 1}]})
    table = run.logged["t_eval_results"]
    assert table["columns"] == ["doc_id", "acc", "resps"] and table["data"][1] == [1, None, None]
    lines = run.artifacts["samples_by_task_t"].splitlines()
    assert len(lines) == 2 and json.loads(lines[1]) == {"doc_id": 1}
    assert "very-secret-value" not in json.dumps([table, lines])


def test_without_wandb_the_install_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmms_eval.compat.helpers.is_package_available", lambda name: False)
    with pytest.raises(MissingOptionalDependencyError, match=r"pip install lmms_eval\[wandb\]"):
        WandbLogger()
