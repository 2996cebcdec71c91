"""Media that documents name: of data from the hub (``--data_root`` holds copies of it), and of the user's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.request import Request
from lmms_eval.api.task import Answer, TaskOptions
from lmms_eval.checks.findings import finding
from lmms_eval.errors import AbsentFileError, DataError, MediaError
from lmms_eval.media.policy import MediaPolicy
from lmms_eval.tasks.data.splits import DataRequest, open_data
from lmms_eval.tasks.mmie.data import documents as mmie
from lmms_eval.tasks.yaml.task import YamlTask
from tests.media.draw import encoded, picture
from tests.tasks.kit import Function, loaded, write_rows

REFUSED = r"probe\.yaml: a document names .*--allow_media"
ROW = {"question": "what", "answer": "a"}
JUDGED = """
def ask(doc, results):
    if doc["question"] == "messages":
        content = [{"type": "image", "url": doc["image"]}]
        return [{"messages": [{"role": "user", "content": content}]}]
    return [{"prompt": "rate", "images": [doc["image"]]}]

def process(doc, results, verdicts):
    return {"exact_match": 1.0}
"""


@pytest.fixture
def secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A picture that no data set should be able to show."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "me.png").write_bytes(encoded(picture(), "PNG"))
    return str(tmp_path / "private" / "me.png")


def from_hub(
    folder: Path, row: Mapping[str, Any], code: str = "", run_options: Mapping[str, str] | None = None, **changes: Any
) -> YamlTask:
    """A task of a hub data set, of which a copy lies below ``--data_root``."""
    (folder / "copies" / "org" / "name").mkdir(parents=True, exist_ok=True)
    write_rows(folder / "copies" / "org" / "name", [{**ROW, **row}], "test.jsonl")
    keys = {"dataset_path": "org/name", "dataset_kwargs": None, "doc_to_visual": "image", **changes}
    return loaded(
        folder / "task", keys, code, TaskOptions(data_root=str(folder / "copies"), run_options=run_options or {})
    )


def first(task: YamlTask) -> Request:
    return task.exchange(0, 0).open()[0]


def test_the_media_folder_of_a_task_may_be_a_link_of_the_user(secret: str, tmp_path: Path) -> None:
    (tmp_path / "home" / "pictures").symlink_to(Path(secret).parent)
    kwargs = {"cache_dir": "pictures", "video": True}
    row = {"image": str(tmp_path / "home" / "pictures" / "me.png")}
    first(from_hub(tmp_path, row, dataset_kwargs=kwargs)).build_messages()
    with pytest.raises(MediaError, match=REFUSED):
        first(from_hub(tmp_path, row)).build_messages()


def shown(task: YamlTask) -> list[Any]:
    return first(task).build_messages().extract_media()[0]


def test_a_file_of_the_machine_is_refused_unless_allowed(secret: str, tmp_path: Path) -> None:
    task = from_hub(tmp_path, {"image": secret})
    with pytest.raises(MediaError, match=REFUSED):
        shown(task)
    allowed = {"allow_media": f"/no/such/folder,{Path(secret).parent}"}
    assert shown(from_hub(tmp_path, {"image": secret}, run_options=allowed)) == [secret]


@pytest.mark.parametrize("folder", ["copies/org/name", "home/datasets", "task/images", "media"])
def test_its_own_folders_are_allowed(secret: str, tmp_path: Path, folder: str) -> None:
    path = tmp_path / folder / "a.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(Path(secret).read_bytes())
    given = {"media_root": str(tmp_path / "media")}
    assert shown(from_hub(tmp_path, {"image": str(path)}, run_options=given)) == [str(path)]


@pytest.mark.parametrize("value", ["http://127.0.0.1/a.png", "file:///etc/hostname.png", "../private/me.png"])
def test_what_else_is_refused(secret: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.chdir(tmp_path / "home")
    with pytest.raises(MediaError, match=REFUSED):
        shown(from_hub(tmp_path, {"image": value}))


def test_the_users_own_data_may_name_what_it_likes(secret: str, tmp_path: Path) -> None:
    for value in (secret, "http://127.0.0.1:9/a.png"):
        assert shown(loaded(tmp_path / "own", {"doc_to_visual": "image"}, rows=[{**ROW, "image": value}])) == [value]


def test_a_column_names_files_next_to_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``data_files`` does, whatever the current folder is."""
    for folder in ("own", "elsewhere", "media"):
        (tmp_path / folder / "pics").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "elsewhere")
    beside = tmp_path / "own" / "pics" / "a.png"
    beside.touch()

    def task(value: Any) -> YamlTask:
        return loaded(tmp_path / "own", {"doc_to_visual": "image"}, rows=[{**ROW, "image": value}])

    assert shown(task("pics/a.png")) == [str(beside)]
    assert task("a name").prompts.visuals({"image": "a name"}) == ["a name"]  # for a plugin that knows what it means
    with pytest.raises(AbsentFileError, match=r"media file 'pics/b.png' not found; tried .*own/pics/b.png, pics/b.png"):
        shown(task("pics/b.png"))
    (tmp_path / "elsewhere" / "pics" / "b.png").touch()
    assert shown(task("pics/b.png")) == ["pics/b.png"]
    found = finding("prompt", AbsentFileError("media file 'b.png' not found; tried /b.png"))
    assert (found.status, found.kind) == ("failed", "file not found")


def test_every_way_into_a_prompt_is_checked(secret: str, tmp_path: Path) -> None:
    code = """
def messages(doc):
    return [{"role": "user", "content": [{"type": "video", "url": doc["image"]}, {"type": "text", "text": "?"}]}]
"""
    messages = from_hub(tmp_path, {"image": secret}, code, doc_to_messages=Function("utils.messages"))
    with pytest.raises(MediaError, match=REFUSED):
        first(messages).build_messages()
    for chat in (True, False):
        plugin = messages.legacy_arguments(first(messages), chat)
        show = plugin[1] if chat else plugin[2]
        with pytest.raises(MediaError, match=REFUSED):
            show(messages.documents[0])


@pytest.mark.parametrize("question", ["images", "messages"])
def test_the_judge_is_shown_nothing_else(secret: str, tmp_path: Path, question: str) -> None:
    keys = {"doc_to_judge": Function("utils.ask"), "process_results": Function("utils.process")}
    task = from_hub(tmp_path, {"image": secret, "question": question}, JUDGED, **keys)
    with pytest.raises(MediaError, match=REFUSED):
        [found.build_messages() for found in task.judge_questions(0, [Answer("a")])]


def test_a_stored_picture_that_is_a_mere_path_is_checked(
    secret: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    columns = {"image": [{"bytes": None, "path": secret}, {"bytes": Path(secret).read_bytes(), "path": "/x.png"}]}
    made = datasets.Dataset.from_dict(columns, features=datasets.Features({"image": datasets.Image()}))
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: made)
    rule = MediaPolicy.of("probe.yaml", [tmp_path / "home"])
    documents = open_data(DataRequest("org/name", None, {}, "probe.yaml", media=rule), "train").documents("train")
    with pytest.raises(MediaError, match=REFUSED):
        documents[0]["image"]
    assert documents[1]["image"].size == (40, 30)


def test_records_of_mmie_name_pictures_of_their_folder(secret: str, tmp_path: Path) -> None:
    record = {"id": "SA-1", "question": [{"text": "q", "image": secret}], "gt_answer": [{"text": "a", "image": None}]}
    (tmp_path / "mmie").mkdir()
    (tmp_path / "mmie" / "data.json").write_text(json.dumps([record]))
    settings = {"data_root": str(tmp_path / "mmie")}
    with pytest.raises(DataError, match=r"1 records cannot be used: record 0: the picture .* is outside"):
        mmie.documents(lmms_eval_specific_kwargs=settings)
    allowed = {**settings, "allow_media": secret}
    assert len(mmie.documents(lmms_eval_specific_kwargs=allowed).rows) == 1
