"""Rows of samples for trackers: bounded, of one type in each column, without secrets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from lmms_eval.trackers.content import MOST_FILE, MOST_TEXT, TrackedSamples, limits_of, task_samples
from lmms_eval.trackers.contract import TaskSamples
from lmms_eval.utils.redaction import REDACTED, note_secrets
from lmms_eval.viewer.media import MediaStore
from tests.cases import for_each


def made(
    tmp: Path, lines: Sequence[dict[str, Any]], limits: tuple[int, int] = (1000, 200), file: str = ""
) -> TaskSamples:
    found = TrackedSamples("t", range(len(lines)), ("acc",), lambda ids: [lines[number] for number in ids], file)
    media = MediaStore(tmp / "media", "thumbnails")
    try:
        return task_samples(found, 9, media, [tmp], limits)
    finally:
        media.close()


def line(doc_id: int, **more: Any) -> dict[str, Any]:
    return {"doc_id": doc_id, "target": "a", "filtered_resps": "a", "input": "q", "filter": "none", "acc": 1.0, **more}


def column(samples: TaskSamples, name: str) -> list[Any]:
    return [row[samples.columns.index(name)] for row in samples.rows]


def test_rows_are_taken_evenly(tmp_path: Path) -> None:
    found = made(tmp_path, [line(number) for number in range(50)], (5, 200))
    assert column(found, "doc_id") == ["0", "10", "20", "30", "40"]
    assert (found.documents, column(found, "acc")) == (9, [1.0] * 5)


def test_a_column_has_one_type(tmp_path: Path) -> None:
    found = made(tmp_path, [line(0), line(1, acc={"pred": "x"}), line(2, acc=None)])
    assert column(found, "acc") == ["1.0", json.dumps({"pred": "x"}), None]


def test_texts_are_cut_and_secrets_masked(tmp_path: Path) -> None:
    note_secrets(["canary-5d2e11-canary"])
    hostile = "\ud800" + "x" * 9000
    found = made(tmp_path, [line(0, filtered_resps="say canary-5d2e11-canary"), line(1, filtered_resps=hostile)])
    masked, cut = column(found, "answer")
    assert masked == f"say {REDACTED}"
    assert len(cut) == MOST_TEXT + 3 and cut.startswith("?x") and cut.endswith("...")


def test_pictures_are_small_and_few(tmp_path: Path) -> None:
    for number in range(4):
        Image.new("RGB", (1500, 900), (number, 0, 0)).save(tmp_path / f"{number}.png")
    sent = [{"type": "image", "path": f"{number}.png"} for number in range(4)]
    absent = {"type": "image", "path": "absent.png"}
    lines = [line(0, sent_media=sent), line(1, sent_media=[absent, sent[0]]), line(2, sent_media=sent[:1]), line(3)]
    found = made(tmp_path, lines, (1000, 3))
    assert [len(paths) for paths in found.pictures] == [2, 1, 0, 0]
    for path in found.pictures[0]:
        with Image.open(path) as image:
            assert max(image.size) <= 512


@for_each(("size", "is_sent"), [(10, True), (MOST_FILE + 1, False)])
def test_a_large_samples_file_stays_here(tmp_path: Path, size: int, is_sent: bool) -> None:
    file = tmp_path / "s.jsonl"
    with file.open("wb") as opened:
        opened.truncate(size)
    assert made(tmp_path, [line(0)], file=str(file)).file == (str(file) if is_sent else "")


def test_many_tasks_share_the_bounds() -> None:
    assert limits_of(1) == (1000, 200)
    assert limits_of(200) == (100, 10)
    assert limits_of(50_000)[0] == 1
