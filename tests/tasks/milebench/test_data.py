from __future__ import annotations

import io
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.milebench import data
from lmms_eval.tasks.milebench.settings import Settings
from tests.cases import for_each
from tests.tasks.milebench import made


def pack(archive: Path, folder: Path, top: str = "") -> Path:
    with tarfile.open(archive, "w:gz") as opened:
        for entry in sorted(folder.iterdir()):
            opened.add(entry, f"{top}{entry.name}")
    return archive


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    return tmp_path / "home"


def given(root: Path, **more: Any) -> dict[str, Any]:
    return {"data_root": str(root), **more}


@for_each("below", ["", "MileBench", "FreedomIntelligence/MileBench", "FreedomIntelligence__MileBench"])
def test_a_local_root_folder(tmp_path: Path, below: str) -> None:
    made.write(tmp_path / "data" / below, "OCR-VQA")
    found = data.documents("OCR-VQA", given(tmp_path / "data"))
    assert len(found.rows) == 3 and found.files == [tmp_path / "data" / below / "OCR-VQA" / "OCR-VQA.json"]
    row = found.rows[1]
    assert (row["sample_id"], row["dataset"], row["question_type"]) == (1, "OCR-VQA", "multi-choice")
    assert row["instruction"] == "Answer by the pictures only."
    assert len(row["images_path"]) == 5 and row["response"] in row["choice_list"] and row["sheets"] is None


def test_the_hub_archives(tmp_path: Path, home: Path) -> None:
    source = made.write(tmp_path / "data", "TQA", "WebQA")
    snapshot = home / "hub" / "datasets--FreedomIntelligence--MileBench" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    pack(snapshot / "MileBench_part5.tar.gz", source)
    assert data.root("TQA", Settings()) == home / "milebench_data"
    assert len(data.documents("WebQA").rows) == 3


def test_missing_data_say_what_to_fetch(tmp_path: Path, home: Path) -> None:
    with pytest.raises(DataError) as raised:
        data.documents("GPR1200", given(tmp_path))
    text = str(raised.value)
    for part in (
        "MileBench_part1.tar.gz (2.63 GB; it also holds EgocentricNavigation, CounterfactualInference, DocVQA",
        str(tmp_path / "MileBench" / "GPR1200" / "GPR1200.json"), str(home / "milebench_data" / "GPR1200"),
        "hf download FreedomIntelligence/MileBench", "--data_root DIR",
    ):  # fmt: skip
        assert part in text


def test_the_adversarial_variant(tmp_path: Path) -> None:
    made.write(tmp_path, "TQA", "GPR1200")
    usual = data.documents("TQA", given(tmp_path)).rows
    other = data.documents("TQA", given(tmp_path, adversarial=True)).rows
    assert all(mine["response"] != theirs["response"] for mine, theirs in zip(usual, other, strict=True))
    with pytest.raises(DataError, match=r"GPR1200-adv\.json does not exist \(MileBench has none"):
        data.documents("GPR1200", given(tmp_path, adversarial=True))
    (tmp_path / "TQA" / "TQA-adv.json").unlink()
    with pytest.raises(DataError, match=r"TQA-adv\.json does not exist$"):
        data.documents("TQA", given(tmp_path, adversarial=True))


def test_sheets_of_the_annotation(tmp_path: Path) -> None:
    made.write(tmp_path, "TQA")
    assert data.documents("TQA", given(tmp_path, combine_image=1)).rows[2]["sheets"] == ["2-0.jpg"]
    assert data.documents("TQA", given(tmp_path, combine_image=2)).rows[2]["sheets"] is None


def test_texts_numbers_and_null(tmp_path: Path) -> None:
    made.write(tmp_path, "TQA")
    file = tmp_path / "TQA" / "TQA.json"
    made.edit(file, sample_id="0042", choice_list=[1, 2.5, "x"], response=1, depth=0.5, length=7)
    row = data.documents("TQA", given(tmp_path)).rows[0]
    assert (row["sample_id"], row["choice_list"], row["response"]) == (42, ["1", "2.5", "x"], "1")
    made.edit(file, choice_list=None)
    assert data.documents("TQA", given(tmp_path)).rows[0]["choice_list"] is None


@for_each(
    ("changes", "message"),
    [
        ({"sample_id": "x"}, r"data\[0\]: sample_id 'x' is no whole number"),
        ({"task_instruction_id": 9}, "task_instruction_id 9 is no entry"),
        ({"images_path": ["../../secret.png"]}, "outside the folder of pictures"),
        ({"images_path": "a.png"}, "must be a list of paths"),
        ({"context": None}, "needs task_instance.context"),
        ({"task_instance": 3}, "no task_instance"),
    ],
)
def test_a_damaged_sample_is_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    made.write(tmp_path, "TQA")
    made.edit(tmp_path / "TQA" / "TQA.json", **changes)
    with pytest.raises(DataError, match=message):
        data.documents("TQA", given(tmp_path))


@for_each("text", ["{", "[]", '{"meta_data": {}}', '{"meta_data": {}, "data": [1]}'])
def test_a_file_that_is_no_annotation(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.json"):
        data.read_annotation(tmp_path / "a.json")


def test_another_question_type_is_told(tmp_path: Path) -> None:
    from loguru import logger

    made.write(tmp_path, "TQA")
    file = tmp_path / "TQA" / "TQA.json"
    whole = json.loads(file.read_text("utf-8"))
    whole["meta_data"]["question_type"] = "open-ended"
    file.write_text(json.dumps(whole), encoding="utf-8")
    lines: list[str] = []
    sink = logger.add(lines.append, level="WARNING", format="{message}")
    try:
        assert data.documents("TQA", given(tmp_path)).rows[0]["question_type"] == "open-ended"
    finally:
        logger.remove(sink)
    assert "'open-ended', which is scored so; the paper reports accuracy" in "".join(lines)


@for_each("top", ["", "./", "MileBench/"])
def test_all_data_sets_of_an_archive_are_put_in_place(tmp_path: Path, top: str) -> None:
    archive = pack(tmp_path / "part.tar.gz", made.write(tmp_path / "data", "TQA", "WebQA"), top)
    target = tmp_path / "home" / "milebench_data"
    data.unpack(archive, target, "TQA")
    assert sorted(entry.name for entry in target.iterdir()) == ["TQA", "WebQA"]
    assert (target / "TQA" / "TQA.json").is_file() and list((target / "WebQA" / "images").iterdir())
    (target / "TQA" / "mine.txt").write_text("kept", encoding="utf-8")
    data.unpack(archive, target, "TQA")
    assert (target / "TQA" / "mine.txt").is_file()


def test_an_incomplete_folder_is_not_touched(tmp_path: Path) -> None:
    archive = pack(tmp_path / "part.tar.gz", made.write(tmp_path / "data", "TQA"))
    (tmp_path / "target" / "TQA").mkdir(parents=True)
    with pytest.raises(DataError, match=r"is there without TQA\.json; remove it"):
        data.unpack(archive, tmp_path / "target", "TQA")


def damaged(archive: Path, member: tarfile.TarInfo, data: bytes = b"") -> None:
    member.size = len(data)
    with tarfile.open(archive, "w:gz") as opened:
        note = tarfile.TarInfo("TQA/TQA.json")
        note.size = 2
        opened.addfile(note, io.BytesIO(b"{}"))
        opened.addfile(member, io.BytesIO(data))


def link() -> tarfile.TarInfo:
    made_link = tarfile.TarInfo("TQA/images")
    made_link.type, made_link.linkname = tarfile.SYMTYPE, "/etc"
    return made_link


@for_each(
    ("member", "message"),
    [
        (tarfile.TarInfo("../outside.txt"), "leads outside"),
        (tarfile.TarInfo("/outside.txt"), "leads outside"),
        (tarfile.TarInfo("TQA\\..\\outside.txt"), "leads outside"),
        (link(), "link or device"),
    ],
)
def test_nothing_leads_outside(tmp_path: Path, member: tarfile.TarInfo, message: str) -> None:
    damaged(tmp_path / "part.tar.gz", member)
    with pytest.raises(DataError, match=message):
        data.unpack(tmp_path / "part.tar.gz", tmp_path / "target", "TQA")
    assert not list((tmp_path / "target").iterdir())
    assert not (tmp_path / "outside.txt").exists()


def test_a_cut_archive_leaves_nothing(tmp_path: Path) -> None:
    archive = pack(tmp_path / "part.tar.gz", made.write(tmp_path / "data", "TQA", counts=(5, 9), size=(90, 80)))
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    with pytest.raises(DataError, match=r"part\.tar\.gz cannot be unpacked .*download it again"):
        data.unpack(archive, tmp_path / "target", "TQA")
    assert not list((tmp_path / "target").iterdir())


def test_an_archive_of_something_else(tmp_path: Path) -> None:
    archive = pack(tmp_path / "part.tar.gz", made.write(tmp_path / "data", "TQA"))
    with pytest.raises(DataError, match=r"holds no WebQA/WebQA\.json; it has: TQA"):
        data.unpack(archive, tmp_path / "target", "WebQA")


def test_an_archive_that_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = pack(tmp_path / "part.tar.gz", made.write(tmp_path / "data", "TQA"))
    full = shutil.disk_usage(tmp_path)._replace(free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: full)
    with pytest.raises(DataError, match="needs at least"):
        data.unpack(archive, tmp_path / "target", "TQA")
