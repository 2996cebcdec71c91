"""The adapter of MEGA-Bench's prompts compares which files are shown, not only their pixels."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval.tasks.megabench import prompts
from lmms_eval.tasks.megabench.data import parse_row
from lmms_eval.tasks.megabench.settings import MediaAccess
from tests.parity.adapters import megabench_pipeline
from tests.parity.replay import line_state
from tests.tasks.megabench.rows_for_tests import document, write_media

LINES = "megabench_pipeline/prompts.jsonl"
PICTURES = {"example_media": ["./data/T/plain.png"], "query_media": ["./data/T/alpha.png"]}
MIXED = {"query_text": "<image>\n<video>\nWhich?", "query_media": ["./data/T/plain.png", "./data/T/clip.mp4"]}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The slice's place, with a copy of each file under another name."""
    place = write_media(tmp_path / "slice")
    for file in list((place / "data" / "T").iterdir()):
        shutil.copyfile(file, file.with_stem(f"same_{file.stem}"))
    monkeypatch.setattr(megabench_pipeline, "SLICE", place)
    return place


def line(monkeypatch: pytest.MonkeyPatch, root: Path, **changes: Any) -> dict[str, Any]:
    """What the product shows of a document, as a record; the document becomes the slice's only row."""
    doc = document(**changes)
    row, media = parse_row(doc), MediaAccess(root)
    monkeypatch.setattr(megabench_pipeline, "docs", lambda configuration: {"7": doc})
    monkeypatch.setattr(megabench_pipeline, "rows", lambda configuration: {"7": row})
    names = iter(row.media)
    visuals = []
    for visual in prompts.visuals(row, media):
        shown = {"type": "image", "mode": visual.mode, "size": list(visual.size)}
        pixels = np.asarray(visual).reshape(-1, 3)
        visuals.append({**shown, "mean_rgb": pixels.mean(axis=0).tolist()})
        if (name := next(names, "")).endswith("png"):
            visuals[-1]["path"] = name
    record = {"config": "core", "id": "7", "task_name": row.task_name, "media_type": row.kind}
    return {**record, "prompt": prompts.prompt_text(row, media), "target": row.answer_text, "visuals": visuals}


def renamed(record: dict[str, Any], number: int) -> dict[str, Any]:
    """The record with the copy of the file in one place of it."""
    visuals = [dict(visual) for visual in record["visuals"]]
    visuals[number]["path"] = visuals[number]["path"].replace("T/", "T/same_")
    return {**record, "visuals": visuals}


@pytest.mark.parametrize("number", [0, 1])
def test_another_file_with_the_same_pixels_fails(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    record = line(monkeypatch, root, **PICTURES)
    assert line_state(tmp_path / "golden", LINES, record) == "passed"
    assert line_state(tmp_path / "golden", LINES, renamed(record, number)) == "failed"


def test_frames_must_be_of_the_clip_in_their_place(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = line(monkeypatch, root, **MIXED)
    assert line_state(tmp_path / "golden", LINES, record) == "passed"
    frames = prompts.frames
    monkeypatch.setattr(prompts, "frames", lambda name, media: frames(name.replace("T/", "T/same_"), media))
    assert line_state(tmp_path / "golden", LINES, record) == "failed"


@pytest.mark.parametrize("kind", [PICTURES, MIXED])
def test_messages_must_show_the_files_of_the_visuals(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, kind: dict[str, Any]
) -> None:
    record = line(monkeypatch, root, **kind)
    part = prompts.image_part
    monkeypatch.setattr(prompts, "image_part", lambda path: part(path.with_stem(f"same_{path.stem}")))
    assert line_state(tmp_path / "golden", LINES, record) == "failed"
