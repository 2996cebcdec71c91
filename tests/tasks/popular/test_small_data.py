"""Whole runs over small data in the layout of the hub, with fixed answers and with the reference answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.evaluator import simple_evaluate
from lmms_eval.tasks.catalogue import Catalogue
from tests.parity.compare import agree
from tests.parity.vectors import DATA_DIR

FOLDER = DATA_DIR / "popular_tasks"
NAMES = sorted({path.parent.name for path in FOLDER.glob("*/expected.json")} & set(Catalogue().tasks))
TOLERANCE = 1e-5
"""The numbers are written with six digits."""

if not NAMES:
    pytest.skip(f"no small data of the popular benchmarks at {FOLDER}", allow_module_level=True)


def media_of(name: str, home: Path) -> None:
    """Show a task's media where the family keeps them, below ``HF_HOME``."""
    folder = FOLDER / name / "media"
    if folder.is_dir():
        home.mkdir()
        (home / name.removesuffix("_subset")).symlink_to(folder)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(name: str, **arguments: Any) -> dict[str, Any]:
        media_of(name, tmp_path / "home")
        monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
        return simple_evaluate(tasks=[name], data_root=str(FOLDER / name), **arguments)

    return run


@pytest.mark.parametrize("name", NAMES)
def test_fixed_answers_give_the_expected_numbers(name: str, run: Any, tmp_path: Path) -> None:
    expected = json.loads((FOLDER / name / "expected.json").read_text("utf-8"))
    lines = [json.loads(line) for line in (FOLDER / name / "answers.jsonl").read_text("utf-8").splitlines()]
    samples = tmp_path / f"samples_{name}.jsonl"
    rows = [{"doc_id": line["doc_id"], "resps": [line["answer"]]} for line in lines]
    samples.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    results = run(name, model="replay", model_args=f"path={samples}")["results"][name]
    for key, value in {**expected["metrics"], **expected.get("fixed", {})}.items():
        assert agree(value, results[key], TOLERANCE), key


@pytest.mark.parametrize("name", NAMES)
def test_reference_answers_are_scored_without_a_failure(name: str, run: Any) -> None:
    outcome = run(name, model="baseline", model_args="strategy=gold")["outcomes"][name]
    assert outcome["failed"] == 0
