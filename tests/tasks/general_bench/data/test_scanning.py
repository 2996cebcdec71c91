from __future__ import annotations

import io
import json
import shutil
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.data import scanning
from lmms_eval.tasks.general_bench.data.scanning import match, media_folder, scan
from lmms_eval.tasks.general_bench.facts import find_task, tasks
from tests.cases import for_each
from tests.tasks.general_bench.data.kit import write_task


def small_set(folder: Path) -> Path:
    write_task(folder / "nlp" / "Math-QA", "Math Question Answering")
    write_task(folder / "Video" / "Comprehension" / "BallTracking", "Ball Tracking")
    write_task(folder / "3d" / "generation" / "motion", "Text to 3D Motion Generation")
    write_task(folder / "audio" / "comprehension" / "AccentClassification")
    return folder


@for_each(
    ("below", "subset"),
    [
        ("General-Bench-Openset", "open"),
        ("general_bench_closeset", "closed"),
        ("GeneralBench-OpenSet", "open"),
        ("S-A-Quick", "closed"),
        ("my-copy", "open"),
    ],
)
def test_a_set_and_the_folder_that_holds_it(tmp_path: Path, below: str, subset: str) -> None:
    small_set(tmp_path / "root" / below)
    for root in (tmp_path / "root", tmp_path / "root" / below):
        found, problems = scan(root)
        assert problems == []
        assert [(one.modality, one.paradigm, one.name) for one in found] == [
            ("3D", "generation", "motion"),
            ("Audio", "comprehension", "AccentClassification"),
            ("NLP", "", "Math-QA"),
            ("Video", "comprehension", "BallTracking"),
        ]
        assert {one.subset for one in found} == {subset}
        assert {one.set_folder for one in found} == {tmp_path / "root" / below}
        rows, _ = match(found)
        assert {facts.name for facts in rows} == {
            "Math Question Answering", "Ball Tracking", "Text to 3D Motion Generation", "Accent Classification",
        }  # fmt: skip


def test_no_set(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no General-Bench-Openset"):
        scan(tmp_path)
    with pytest.raises(DataError, match="no such folder"):
        scan(tmp_path / "nothing")


def test_named_sets_come_before_scoped_ones(tmp_path: Path) -> None:
    small_set(tmp_path / "S-A-Quick")
    small_set(tmp_path / "General-Bench-Closeset")
    assert {one.set_folder.name for one in scan(tmp_path)[0]} == {"General-Bench-Closeset"}


def test_one_unusable_folder_stops_no_other(tmp_path: Path) -> None:
    small_set(tmp_path)
    (tmp_path / "nlp" / "empty").mkdir()
    broken = write_task(tmp_path / "nlp" / "broken")
    broken.write_text('{"task": "x", "da')
    listed = write_task(tmp_path / "nlp" / "listed")
    listed.write_text("[]")
    (tmp_path / "image" / "odd").mkdir(parents=True)
    (tmp_path / "image" / "open.tar.gz").write_bytes(b"")
    for left_out in ("__MACOSX", ".cache"):
        (tmp_path / "nlp" / left_out).mkdir()
    found, problems = scan(tmp_path)
    assert len(found) == 4
    assert len(problems) == 5
    text = "\n".join(problems)
    for part in (
        f"{tmp_path / 'nlp' / 'empty'} holds no annotation.json", f"{broken} is no complete JSON", f"{listed}: holds a",
        f"{tmp_path / 'image' / 'odd'} is passed over: comprehension or generation",
        "open.tar.gz is passed over: unpack it",
    ):  # fmt: skip
        assert part in text


def test_matching(tmp_path: Path) -> None:
    open_set, closed = tmp_path / "General-Bench-Openset", tmp_path / "General-Bench-Closeset"
    write_task(open_set / "nlp" / "b", "  math question   answering")
    write_task(open_set / "nlp" / "c", "Math Question Answering")
    write_task(open_set / "nlp" / "d", "Maths Question Answering")
    write_task(open_set / "nlp" / "Math Question Answering", "No such task")
    write_task(open_set / "image" / "generation" / "e", "Ball Tracking")
    for name in ("Math Question Answering", "TriviaQA"):
        write_task(closed / "nlp" / name, name)
    found, _ = scan(tmp_path)
    both, listed = match(found)
    maths, trivia, balls = find_task("Math Question Answering"), find_task("TriviaQA"), find_task("Ball Tracking")
    assert {facts: one.path.name for facts, one in both.items()} == {maths: "b", trivia: "TriviaQA", balls: "e"}
    assert both[maths].subset == "open" and both[trivia].subset == "closed"
    problems = "\n".join(listed)
    for name in ("d", "Math Question Answering"):
        assert f"{open_set / 'nlp' / name / 'annotation.json'}: " in problems
    assert "did you mean Math Question Answering" in problems
    assert f"{open_set / 'nlp' / 'c'} and {open_set / 'nlp' / 'b'} both hold the task" in problems
    assert "belongs to Video comprehension: taken all the same" in problems
    assert len(listed) == 4
    only, listed = match(found, "closed")
    assert {one.subset for one in only.values()} == {"closed"} and listed == []


def zipped(file: Path, **texts: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w") as opened:
        for name, text in texts.items():
            opened.writestr(name, text)


ANNOTATION = json.dumps({"task": "Ball Tracking", "data": []})


@for_each("top", ["", "BallTracking/", "open/balltracking/", "data/"])
def test_an_archive_with_everything(tmp_path: Path, top: str) -> None:
    folder = tmp_path / "video" / "comprehension" / "BallTracking"
    zipped(folder / "open.zip", **{f"{top}annotation.json": ANNOTATION, f"{top}videos/1.mp4": "v"})
    for _ in range(2):
        found, problems = scan(tmp_path)
        assert problems == [] and [one.task for one in found] == ["Ball Tracking"]
        assert (folder / "videos" / "1.mp4").read_text() == "v"
        assert {entry.name for entry in folder.iterdir()} == {"open.zip", "annotation.json", "videos"}


@for_each("top", ["", "videos/", "BallTracking/videos/", "1/"])
def test_archives_of_media_beside_an_annotation(tmp_path: Path, top: str) -> None:
    folder = tmp_path / "video" / "comprehension" / "BallTracking"
    file = write_task(folder, "Ball Tracking")
    own = file.read_text()
    zipped(folder / "a.zip", **{f"{top}1.mp4": "v", "__MACOSX/x": ""})
    with tarfile.open(folder / "b.tgz", "w:gz") as opened:
        opened.addfile(tarfile.TarInfo(f"{top}2.mp4"), io.BytesIO())
    assert scan(tmp_path)[1] == []
    below = folder / top.removeprefix("BallTracking/")
    assert not (folder / "__MACOSX").exists()
    assert (below / "1.mp4").is_file() and (below / "2.mp4").is_file()
    assert file.read_text() == own


def test_archives_that_cannot_be_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "video" / "comprehension"
    zipped(place / "A" / "open.zip", **{"annotation.json": ANNOTATION})
    (place / "A" / "open.zip").write_bytes(b"PK nothing")
    zipped(place / "B" / "open.zip", **{"nothing.txt": "no annotation"})
    write_task(place / "C", "Ball Tracking")
    zipped(place / "C" / "videos.zip", **{"../1.mp4": "v"})
    found, problems = scan(tmp_path)
    assert [one.name for one in found] == ["C"]
    assert len(problems) == 3
    assert "open.zip cannot be unpacked" in problems[0] and "holds no annotation.json" in problems[1]
    assert "leads outside" in problems[2]
    assert not (place / "1.mp4").exists()
    monkeypatch.setattr(scanning.os, "access", lambda *_: False)
    assert "cannot be written; unpack it there, or copy the folder" in scan(tmp_path)[1][0]


def test_media_of_a_scoped_set(tmp_path: Path) -> None:
    full, quick = tmp_path / "closed" / "General-Bench-Closeset", tmp_path / "S-A-Quick"
    opened = tmp_path / "open" / "General-Bench-Openset"
    for folder in (full, opened):
        write_task(folder / "Video" / "comprehension" / "balltracking", "Ball Tracking")
        (folder / "Video" / "comprehension" / "balltracking" / "videos").mkdir()
    write_task(quick / "video" / "Comprehension" / "BallTracking", "Ball Tracking")
    write_task(quick / "video" / "Comprehension" / "Other", "Human Tracking")
    write_task(quick / "nlp" / "TriviaQA", "TriviaQA")
    trivia, ball, other = scan(quick)[0]
    media = full / "Video" / "comprehension" / "balltracking"
    assert media_folder(ball) == ball.path
    assert media_folder(ball, [opened.parent, full.parent]) == media
    assert media_folder(ball, [full]) == media
    assert media_folder(ball, [opened, tmp_path / "nothing"]).is_relative_to(opened)
    assert media_folder(other, [full]) == other.path and media_folder(trivia, [full]) == trivia.path
    shutil.copytree(full, tmp_path / "General-Bench-Closeset")
    assert media_folder(ball).is_relative_to(tmp_path / "General-Bench-Closeset")
    (ball.path / "videos").mkdir()
    assert media_folder(ball, [full]) == ball.path


def test_all_rows_are_found_in_well_under_a_second(tmp_path: Path) -> None:
    for facts in tasks():
        place = tmp_path / facts.modality.lower() / facts.paradigm / facts.id
        write_task(place, facts.name, [{"id": number, "input": "x" * 50} for number in range(20)])
    start = time.perf_counter()
    found, problems = match(scan(tmp_path)[0])
    assert time.perf_counter() - start < 20
    assert len(found) == len(tasks()) and problems == []


def test_a_folder_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_set(tmp_path)

    def denied(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(scanning, "packed_content", denied)
    found, problems = scan(tmp_path)
    assert found == [] and len(problems) == 4 and "cannot be read: Permission denied" in problems[0]
