from __future__ import annotations

import os

import pytest

from lmms_eval.compat.media import get_cache_dir, resolve_cache_dir
from tests.cases import for_each


def test_variables_come_before_the_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_FOLDER", "~/below")
    home = os.path.expanduser("~")
    assert resolve_cache_dir("${SOME_FOLDER}/v", "/base") == f"{home}/below/v"
    assert resolve_cache_dir("$NO_SUCH_VARIABLE/../v", "/base") == "/base/$NO_SUCH_VARIABLE/../v"
    assert resolve_cache_dir("v") == "v"


@for_each(("home", "folder"), [("/hf", "/hf/set/clips"), ("~/hf", "~/hf/set/clips"), ("", "set/clips")])
def test_media_lie_below_the_hubs_folder(monkeypatch: pytest.MonkeyPatch, home: str, folder: str) -> None:
    monkeypatch.setenv("HF_HOME", home)
    assert get_cache_dir({"dataset_kwargs": {"cache_dir": "set"}}, "clips") == os.path.expanduser(folder)


def test_the_hubs_folder_has_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HOME", raising=False)
    wanted = os.path.expanduser("~/.cache/huggingface/set/videos")
    assert get_cache_dir({"dataset_kwargs": {"cache_dir": "set"}}) == wanted
    with pytest.raises(KeyError):
        get_cache_dir({})
