"""Tasks in the family's style that use every name which its task files import, each run to a score."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.evaluator import simple_evaluate
from tests.family_tasks.table import DOC, FOLDER, names, table, task_files, uses
from tests.servers.stub import StubServer

OPTIONAL = {"family_spoken_chinese": "zhconv", "family_reasoned_math": "math_verify"}
"""Tasks whose score rests on a package of the user's choice."""
NOUGHT = {"family_spoken_wer"}
"""Tasks that count errors."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Any]]:
    """Reference answers to all tasks, in one run."""
    with pytest.MonkeyPatch.context() as patch, StubServer() as server:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        home = tmp_path_factory.mktemp("home")
        shutil.copytree(FOLDER / "hf_home", home, dirs_exist_ok=True)  # libraries write there
        variables = {
            "HF_HOME": str(home),
            "FAMILY_MEDIA": str(FOLDER / "media"),
            "OPENAI_API_KEY": "key",
            "OPENAI_API_URL": f"{server.url}/chat/completions",
            "AZURE_OPENAI_API_KEY": "key",
            "AZURE_OPENAI_ENDPOINT": server.url,
        }
        for name, value in variables.items():
            patch.setenv(name, value)
        patch.delenv("API_TYPE", raising=False)
        made = simple_evaluate(
            "baseline", model_args="strategy=gold", tasks=list(task_files()), include_path=str(FOLDER),
            bootstrap_iters=0,
        )  # fmt: skip
        yield made["results"]


@pytest.mark.parametrize("task", task_files())
def test_scores(task: str, results: Mapping[str, Any]) -> None:
    if task in OPTIONAL:
        pytest.importorskip(OPTIONAL[task])
    scores = {
        key: value
        for key, value in results[task].items()
        if "," in key and "stderr" not in key and isinstance(value, int | float)
    }
    assert scores
    assert scores == dict.fromkeys(scores, 0.0 if task in NOUGHT else 1.0)


def test_every_name_without_a_test_is_used_by_a_task() -> None:
    used = uses()
    assert [name.path for name in names() if not name.test and name.path not in used] == []
    assert len(names()) > 100


def test_every_test_that_is_named_is_there() -> None:
    assert [name for name in names() if name.test and not name.test_is_there] == []


def test_the_page_is_that_of_the_script() -> None:
    assert DOC.read_text(encoding="utf-8") == table(), "run python -m tests.family_tasks.table"


def test_no_name_is_listed_twice() -> None:
    paths = [name.path for name in names()]
    assert len(paths) == len(set(paths))
    assert Path(FOLDER / "names.tsv").is_file()
