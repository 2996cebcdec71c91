"""The folder of pictures: each file is stored once under its hash, before a record refers to it."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from lmms_eval.api.interleaved import InterleavedText, generated_image
from lmms_eval.api.request import GeneratedImage, Response
from lmms_eval.api.task import Answer
from lmms_eval.engine.records import (
    ImageFolder,
    answer_from_record,
    answer_record,
    images_in,
    response_from_record,
    response_record,
)
from lmms_eval.engine.store import RunStore
from lmms_eval.errors import JournalError
from lmms_eval.storage import codec
from tests.cases import for_each
from tests.painting import png

IMAGE = generated_image(png(1))
SAID = Response.interleaved("t/0/0/0/0", ["a", IMAGE, "b", IMAGE], finish_reason="stop")


def test_pictures_are_written_once_and_their_bytes_let_go(tmp_path: Path) -> None:
    folder = ImageFolder(tmp_path / "images")
    kept = folder.take_in(SAID)
    path = tmp_path / "images" / IMAGE.file_name
    assert path.read_bytes() == png(1)
    assert kept == SAID  # data and path are not compared
    image = kept.parts[1]
    assert isinstance(image, GeneratedImage) and (image.data, image.path) == (None, str(path))
    stamp = path.stat().st_mtime_ns
    folder.take_in(SAID)
    ImageFolder(tmp_path / "images").take_in(SAID)
    assert path.stat().st_mtime_ns == stamp
    assert [entry.name for entry in path.parent.iterdir()] == [IMAGE.file_name]


def test_a_plain_response_makes_no_folder(tmp_path: Path) -> None:
    answer = Response("t/0/0/0/0", text="plain")
    assert ImageFolder(tmp_path / "images").take_in(answer) is answer
    assert not (tmp_path / "images").exists()


def test_a_damaged_file_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / IMAGE.file_name
    path.write_bytes(png(1)[:-4])
    folder = ImageFolder(tmp_path)
    assert not folder.holds(IMAGE)
    folder.take_in(SAID)
    assert path.read_bytes() == png(1) and folder.holds(IMAGE)


@for_each(
    ("image", "problem"),
    [
        (GeneratedImage.from_bytes(b"<svg/>", "image/svg+xml"), "no svg\\+xml file"),
        (GeneratedImage.from_bytes(b"not a picture", "image/png"), "13 bytes that is no png file"),
        (GeneratedImage.from_bytes(png(1), "image/jpeg"), "no jpeg file"),
        (GeneratedImage("../../x", "image/png", png(1)), "do not have its hash"),
        (GeneratedImage("0" * 64, "image/png"), "without bytes"),
    ],
)
def test_what_is_no_picture_is_malformed(tmp_path: Path, image: GeneratedImage, problem: str) -> None:
    answer = Response.interleaved("t/0/0/0/0", [IMAGE, image], attempts=2)
    kept = ImageFolder(tmp_path / "images").take_in(answer)
    assert kept.error is not None and (kept.error.kind, kept.attempts, kept.parts) == ("malformed", 2, ())
    assert re.search(problem, kept.error.message)
    assert not (tmp_path / "images").exists()


def test_a_full_disk_is_a_journal_error(tmp_path: Path) -> None:
    (tmp_path / "images").write_text("a file where the folder should be")
    with pytest.raises(JournalError, match="make room and start the same command again"):
        ImageFolder(tmp_path / "images").take_in(SAID)


def test_what_another_process_wrote_meanwhile_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(_path: Path) -> None:
        (tmp_path / IMAGE.file_name).write_bytes(png(1))
        raise FileNotFoundError

    monkeypatch.setattr("lmms_eval.engine.records.replacing", lost)
    folder = ImageFolder(tmp_path)
    folder.take_in(SAID)
    assert folder.holds(IMAGE)


def test_many_threads_write_one_file(tmp_path: Path) -> None:
    folder = ImageFolder(tmp_path)
    threads = [threading.Thread(target=folder.take_in, args=(SAID,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [entry.name for entry in tmp_path.iterdir()] == [IMAGE.file_name]


def test_pictures_of_an_earlier_place_are_brought_here(tmp_path: Path) -> None:
    ImageFolder(tmp_path / "old").take_in(SAID)
    folder = ImageFolder(tmp_path / "new", [tmp_path / "nowhere", tmp_path / "old"])
    assert folder.holds(IMAGE)
    assert (tmp_path / "new" / IMAGE.file_name).read_bytes() == folder.read(IMAGE) == png(1)


def test_a_picture_that_is_gone_cannot_be_sent_on(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="cannot read the picture"):
        ImageFolder(tmp_path).read(IMAGE)


def test_records_hold_hash_type_and_order_alone() -> None:
    record = response_record(SAID, "")
    named = {"sha256": IMAGE.sha256, "media_type": "image/png"}
    assert record["parts"] == ["a", named, "b", named] and record["text"] == "ab"
    assert response_from_record(codec.loads(codec.dumps(record))) == SAID
    assert images_in(record) == [IMAGE, IMAGE]
    assert "parts" not in response_record(Response("t", text="x"), "")


@for_each("with_paths", [False, True])
@for_each("several", [False, True])
def test_answers_keep_their_parts_through_json(several: bool, with_paths: bool) -> None:
    located = replace(IMAGE, data=None, path="/somewhere")
    text = InterleavedText(["a", located])
    answer = Answer(["plain", text] if several else text, input="asked")
    record = codec.loads(codec.dumps(answer_record(answer, with_paths)))
    assert record["value"] == (["plain", "a"] if several else "a")
    again = answer_from_record(record)
    assert (again.value, again.parts) == (answer.value, ("a", located))
    picture = again.parts[1]
    assert isinstance(picture, GeneratedImage) and picture.path == ("/somewhere" if with_paths else None)
    assert images_in({"answers": [record]}) == [IMAGE]


@for_each("damage", ["gone", "cut"])
def test_a_response_without_its_picture_does_not_count(tmp_path: Path, damage: str) -> None:
    store = RunStore(tmp_path, "scoring")
    store.keep(SAID, "")
    other = Response.interleaved("t/1/0/0/0", [generated_image(png(2))])
    store.keep(other, "")
    store.close()
    again = RunStore(tmp_path, "scoring")
    found = again.response("t/0/0/0/0")
    assert found == SAID and isinstance(found.parts[1], GeneratedImage)
    assert found.parts[1].path == str(tmp_path / "images" / IMAGE.file_name)
    again.close()
    path = tmp_path / "images" / IMAGE.file_name
    path.unlink() if damage == "gone" else path.write_bytes(b"cut")
    third = RunStore(tmp_path, "scoring")
    assert third.response("t/0/0/0/0") is None and third.response("t/1/0/0/0") == other
    assert third.resumed_responses == 1
    third.close()
