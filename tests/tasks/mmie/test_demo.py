"""The demonstration data: made by its script, small, and usable from end to end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lmms_eval.media import load_image
from lmms_eval.tasks.mmie import utils
from lmms_eval.tasks.mmie.data import documents
from lmms_eval.tasks.mmie.settings import Settings
from lmms_eval.utils.picture_marks import INSTRUCTION
from tests.tasks.mmie.kit import script

OPTIONS = {"data_folder": "demo"}
DEMO = Settings.of(OPTIONS).folder


def rows() -> list[dict[str, Any]]:
    return [dict(row) for row in documents.documents(None, OPTIONS).rows]


def test_size_and_variety() -> None:
    assert DEMO is not None
    found = rows()
    assert len(found) >= 30
    assert {tag: sum(row["category"] == tag for row in found) for tag in ("SA", "PBL", "MSR")} == {
        "SA": 12, "PBL": 12, "MSR": 12,
    }  # fmt: skip
    assert sum(path.stat().st_size for path in DEMO.rglob("*") if path.is_file()) < 200_000
    assert sum(any(segment["image"] for segment in row["gt_answer"]) for row in found) >= 20
    assert max(sum(segment["image"] is not None for segment in row["question"]) for row in found) == 5


def test_the_script_makes_the_same_data_again(tmp_path: Path) -> None:
    assert DEMO is not None
    assert script().make(tmp_path) == len(rows())
    assert json.loads((tmp_path / "data.json").read_text()) == json.loads((DEMO / "data.json").read_text())
    made = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.png"))
    assert made == sorted(path.relative_to(DEMO) for path in DEMO.rglob("*.png"))
    for path in made:
        assert load_image(tmp_path / path).tobytes() == load_image(DEMO / path).tobytes()


def test_questions_interleave_texts_and_pictures() -> None:
    story = next(row for row in rows() if row["category"] == "SA")
    (turn,) = utils.doc_to_messages(story, OPTIONS)
    assert [part["type"] for part in turn["content"]] == ["text", "image", "text", "image"]
    assert turn["content"][0]["text"] == story["question"][0]["text"]
    assert Path(turn["content"][1]["url"]).is_file()
    assert len(utils.doc_to_visual(story, OPTIONS)) == 2
    assert utils.doc_to_text(story, OPTIONS).count("<image>") == 2
    assert utils.doc_to_target(story).endswith("\n<image>")


def test_pictures_can_be_asked_for() -> None:
    problem = next(row for row in rows() if row["category"] == "MSR")
    asked = {**OPTIONS, "ask_pictures": True}
    assert utils.doc_to_messages(problem, asked)[0]["content"][-1] == {"type": "text", "text": INSTRUCTION}
    assert utils.doc_to_text(problem, {**OPTIONS, "ask_pictures": "Draw!"}).endswith("\nDraw!")
