from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.tasks.general_bench.measures import registry as identity

FILES = tuple(
    f"tasks/general_bench/{name}/a.py" for name in ("data", "measures", "networks", "nlp", "prompts", "readers")
)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A benchmark of six packages with a file each, and the scores of captions, which all benchmarks share."""
    for name in (*FILES, "metrics/captions.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("x = 1\n")
    monkeypatch.setattr(identity, "__file__", str(tmp_path / "tasks/general_bench/measures/registry.py"))
    identity._code.cache_clear()
    yield tmp_path
    identity._code.cache_clear()


@pytest.mark.parametrize("name", [*FILES, "metrics/captions.py"])
def test_it_changes_with_the_code(package: Path, name: str) -> None:
    before = identity.scoring_identity()
    assert identity.scoring_identity() == before
    (package / name).write_text("x = 2\n")
    identity._code.cache_clear()
    assert identity.scoring_identity() != before


def test_it_changes_with_the_tokenizer(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {identity.scoring_identity()}
    for label in ("treebank (NLTK 3.9.1)", "treebank (NLTK 3.10.4)", "white-space"):
        monkeypatch.setattr(identity, "tokenizer_label", lambda label=label: label)
        found.add(identity.scoring_identity())
    assert len(found) >= 3
