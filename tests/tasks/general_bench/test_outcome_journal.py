from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from lmms_eval.errors import JournalError
from lmms_eval.tasks.general_bench.facts import find_task
from lmms_eval.tasks.general_bench.items import Form, Item, MediaInput
from lmms_eval.tasks.general_bench.measures import registry
from lmms_eval.tasks.general_bench.measures.contract import Context
from lmms_eval.tasks.general_bench.scoring import MISSING, ItemOutcome
from lmms_eval.tasks.general_bench.standalone import OutcomeJournal, hash_of_scoring, key_of
from tests.cases import for_each

FACTS = find_task("Image Deraining")


def item(folder: Path, reference: Any = "clean.png", form: Form = "image", **over: Any) -> Item:
    return structs.replace(Item(1, FACTS, form, "", (), reference, folder, folder, {"id": 1}), **over)


def outcome(number: int, status: Any = "answered") -> ItemOutcome:
    return ItemOutcome(number, status, float(number), "why")


def test_lines_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "below" / "task.jsonl"
    with OutcomeJournal(path) as journal:
        assert "a" not in journal and not path.parent.exists()
        journal.add("a", outcome(1))
        journal.add("b", outcome(2, "unanswered"))
        journal.add("c", outcome(3, "failed"))
    with OutcomeJournal(path) as again:
        assert (again["a"], again["b"]) == (outcome(1), outcome(2, "unanswered"))
        assert "c" not in again  # what failed is tried again


def test_without_a_path_nothing_is_kept() -> None:
    with OutcomeJournal(None) as journal:
        journal.add("a", outcome(1))
        assert "a" not in journal


@for_each("cut", [1, 5, 20])
def test_a_torn_line_is_ended_and_passed_over(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "task.jsonl"
    with OutcomeJournal(path) as journal:
        journal.add("a", outcome(1))
        journal.add("b", outcome(2))
    path.write_bytes(path.read_bytes()[:-cut])
    with OutcomeJournal(path) as journal:
        assert "a" in journal and "b" not in journal
        journal.add("c", outcome(3))
    with OutcomeJournal(path) as journal:
        assert "a" in journal and "c" in journal


def test_a_flipped_bit_changes_no_state(tmp_path: Path) -> None:
    path = tmp_path / "task.jsonl"
    with OutcomeJournal(path) as journal:
        journal.add("a", outcome(1))
        journal.add("b", outcome(2))
    path.write_bytes(path.read_bytes().replace(b'"state":1.0', b'"state":3.0'))
    with OutcomeJournal(path) as journal:
        assert "a" not in journal and journal["b"] == outcome(2)


@for_each("line", [b"\xff\xfe", b"[]", b"5", b'{"key": "x"}', b'{"key": "x", "outcome": {"id": 1}}', b""])
def test_foreign_lines_are_passed_over(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "task.jsonl"
    path.write_bytes(line + b"\n")
    with OutcomeJournal(path) as journal:
        assert "x" not in journal
        journal.add("a", outcome(1))
    with OutcomeJournal(path) as journal:
        assert journal["a"] == outcome(1)


def test_a_journal_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(JournalError, match=r"cannot read the journal .*folder"):
        OutcomeJournal(tmp_path / "folder")
    (tmp_path / "file").touch()
    with OutcomeJournal(tmp_path / "other") as journal:
        journal.path = tmp_path / "file" / "task.jsonl"
        with pytest.raises(JournalError, match=r"cannot open the journal .*task\.jsonl"):
            journal.add("a", outcome(1))


def test_a_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "task.jsonl"
    path.symlink_to("/dev/full")
    with OutcomeJournal(tmp_path / "other") as journal:
        journal.path = path
        with pytest.raises(JournalError, match=r"No space left on device; .*make room and start the same"):
            journal.add("a", outcome(1))


# --- keys


def test_the_key_is_that_of_item_and_prediction(tmp_path: Path) -> None:
    one = item(tmp_path)
    assert key_of(one, "a.png", "m") == key_of(item(tmp_path), "a.png", "m")
    others = [
        key_of(one, "a.png", "m"), key_of(one, "b.png", "m"), key_of(one, "a.png", "n"), key_of(one, MISSING, "m"),
        key_of(item(tmp_path, raw={"id": 1, "x": 2}), "a.png", "m"), key_of(item(tmp_path, id="1"), "a.png", "m"),
        key_of(item(tmp_path, form="map"), "a.png", "m"), key_of(item(tmp_path / "other"), "a.png", "m"),
    ]  # fmt: skip
    assert len(set(others)) == len(others)


def changed(path: Path, content: bytes = b"other") -> None:
    before = path.stat() if path.exists() else None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    if before is not None:  # two writes within a tick of the clock
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000))


@for_each("prediction", ["a.png", " a.png ", {"mask": "a.png"}, [{"mask": "a.png"}], ["a.png", None]])
def test_a_changed_predicted_file_changes_the_key(tmp_path: Path, prediction: Any) -> None:
    one, file = item(tmp_path), tmp_path / "a.png"
    keys = [key_of(one, prediction, "m")]
    for content in (b"first", b"other"):
        changed(file, content)
        keys.append(key_of(one, prediction, "m"))
    assert len(set(keys)) == 3
    assert key_of(one, prediction, "m") == keys[-1]


def test_a_changed_frame_in_a_predicted_folder_changes_the_key(tmp_path: Path) -> None:
    one = item(tmp_path, form="video")
    changed(tmp_path / "frames" / "000.png")
    first = key_of(one, "frames", "m")
    folder_time = (tmp_path / "frames").stat().st_mtime_ns
    changed(tmp_path / "frames" / "000.png")
    assert (tmp_path / "frames").stat().st_mtime_ns == folder_time
    assert key_of(one, "frames", "m") != first


@for_each("place", ["clean.png", "images/clean.png"])
def test_a_changed_reference_or_input_changes_the_key(tmp_path: Path, place: str) -> None:
    shown = MediaInput("image", (tmp_path / "images" / "in.png",))
    one = item(tmp_path, media=(shown,))
    keys = {key_of(one, "a.png", "m")}
    for file in (tmp_path / place, shown.paths[0]):
        changed(file)
        keys.add(key_of(one, "a.png", "m"))
    assert len(keys) == 3


@for_each("prediction", ["a" * 10_000, "a\0b", "\ud800", 5, None, [[1, 2, 3, 4]] * 1000, "/dev/zero", ""])
def test_any_prediction_has_a_key(tmp_path: Path, prediction: Any) -> None:
    for form in ("image", "text"):
        assert len(key_of(item(tmp_path, form=form), prediction, "m")) == 32


def test_what_scores_it_is_in_the_key(tmp_path: Path) -> None:
    psnr, sad = registry.measure_for(FACTS, "image"), registry.measure_for(find_task("Animal Image Matting"), "alpha")
    ratings = tmp_path / "ratings.csv"
    ratings.write_text("id,task,rating\n")
    found = [
        hash_of_scoring(psnr, Context()), hash_of_scoring(sad, Context()), hash_of_scoring(psnr, Context(), "jury"),
        hash_of_scoring(psnr, Context(weights=tmp_path)), hash_of_scoring(psnr, Context(options={"a": 1})),
        hash_of_scoring(psnr, Context(ratings=ratings)),
    ]  # fmt: skip
    changed(ratings)
    found.append(hash_of_scoring(psnr, Context(ratings=ratings)))
    assert len(set(found)) == len(found)
    assert hash_of_scoring(psnr, Context(device="cuda", download=True)) == found[0]
