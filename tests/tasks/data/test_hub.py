"""Tests of ``lmms_eval.tasks.data.hub``."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import datasets
import huggingface_hub
import pytest

from lmms_eval.errors import DataError, MissingDataError
from lmms_eval.tasks.data import hub
from lmms_eval.tasks.data.hub import hub_access, load_hub, stated_features, unreachable
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


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port on loopback that refuses connections."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub as the library asks it without ``HF_HUB_OFFLINE``, and without a proxy."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(hub, "_tried", {})
    for name in ("https_proxy", "http_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_an_unreachable_hub_is_tried_once(online: None, closed_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = f"http://127.0.0.1:{closed_port}"
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", endpoint)
    monkeypatch.setattr(datasets.config, "HF_ENDPOINT", endpoint)
    began = time.monotonic()
    with pytest.raises(MissingDataError, match=r"'no/such' is not on this machine, and 127\.0\.0\.1 cannot be reached"):
        load_hub("no/such", None, {})
    with pytest.raises(MissingDataError, match=r"`lmms-eval fetch TASK` downloads it.*--data_root DIR"):
        hub.file_of("no/such", "x.json", None, "t.yaml")
    assert time.monotonic() - began < 5
    assert huggingface_hub.constants.HF_HUB_OFFLINE is datasets.config.HF_HUB_OFFLINE is False


def test_a_reachable_hub_and_one_behind_a_proxy_are_left_alone(
    online: None, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert unreachable(f"http://127.0.0.1:{server.getsockname()[1]}") == ""
    assert "cannot be reached" in unreachable(f"http://127.0.0.1:{closed_port}")
    assert "cannot be reached" in unreachable("http://127.0.0.1:99999999")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    assert unreachable(f"http://127.0.0.1:{closed_port}") == ""


def test_other_errors_keep_their_words(online: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "unreachable", lambda endpoint: "")
    with (
        pytest.raises(DataError, match="the data cannot be loaded: ValueError: broken; check the name"),
        hub_access("the data"),
    ):
        raise ValueError("broken")
