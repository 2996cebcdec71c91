"""Tests of ``lmms_eval.tasks.data.hub``."""

from __future__ import annotations

import json
from pathlib import Path

import datasets
import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.data.hub import load_hub, stated_features
from lmms_eval.tasks.data.splits import DataRequest, hub_arguments, of_datasets


def test_types_of_columns_as_yaml_states_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    (tmp_path / "data/test.jsonl").write_text(json.dumps({"n": 1, "words": ["a", "b"]}) + "\n")
    stated = {"n": {"dtype": "string"}, "words": {"dtype": "string", "sequence": True}}
    arguments = hub_arguments(DataRequest("x/y", None, {"features": stated, "streaming": True}, "t.yaml"))
    assert set(arguments) == {"features"}
    found = load_hub(str(tmp_path / "data"), None, arguments)
    assert list(found["test"]) == [{"n": "1", "words": ["a", "b"]}]


def test_other_forms_stay() -> None:
    whole = datasets.Features({"n": datasets.Value("int64")})
    assert stated_features(whole) is whole
    assert stated_features({"n": "int64"}) == {"n": "int64"}


def test_splits_that_task_code_makes() -> None:
    rows = [{"n": 1}, {"n": 2}]
    whole = datasets.Dataset.from_list(rows)
    for made in (whole, rows, whole.to_iterable_dataset()):
        assert [dict(row) for row in of_datasets({"test": made}, "t.yaml").documents("test")] == rows
    for made, kind in (([1], "list of int"), (None, "NoneType"), ("rows", "str")):
        with pytest.raises(DataError, match=rf"t\.yaml: split 'test' must be a datasets\.Dataset, not a {kind}"):
            of_datasets({"test": made}, "t.yaml").documents("test")
