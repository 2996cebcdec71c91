from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmms_eval.errors import MediaError
from lmms_eval.tasks.general_bench.prompts import questions
from lmms_eval.tasks.general_bench.settings import Settings
from tests.cases import for_each
from tests.tasks.general_bench.demo_kit import (
    CHOICES,
    DEFECTS,
    DEMO_SETTINGS,
    DETECTION,
    OPTIONS,
    POINTS,
    PROBLEMS,
    SERIES,
    SET,
    SPEECH,
    TRACKING,
    copied,
    edit,
    rows,
)


def kinds(name: str) -> list[str]:
    """What the one turn of a task's first question is made of."""
    (turn,) = questions.messages(rows(name)[0], DEMO_SETTINGS)
    assert turn["role"] == "user"
    return [part["type"] for part in turn["content"]]


def test_a_language_question_is_one_text() -> None:
    assert kinds(CHOICES) == ["text"]
    doc = rows(CHOICES)[0]
    raw = json.loads(doc["item"])["input"]
    assert raw["question"] in questions.text(doc, DEMO_SETTINGS) and raw["options"][1] in questions.text(
        doc, DEMO_SETTINGS
    )
    assert questions.visuals(doc, DEMO_SETTINGS) == []


@for_each(
    ("name", "media"),
    [(DETECTION, ["image"]), (TRACKING, ["image"] * 5), (SPEECH, ["audio"]), (POINTS, ["image"] * 4)],
)
def test_media_stand_before_the_text(name: str, media: list[str]) -> None:
    found = [kind for kind in kinds(name) if kind != "text"]
    assert found[: len(media)] == media
    assert kinds(name)[-1] == "text"
    assert len(questions.visuals(rows(name)[0], DEMO_SETTINGS)) == len(found)


def test_no_more_frames_than_are_wanted() -> None:
    settings = Settings.of({**OPTIONS, "max_frames": 2})
    doc = rows("video_comprehension_object_color_video_question_answering")[0]
    (turn,) = questions.messages(doc, settings)
    assert [part["type"] for part in turn["content"]].count("image") == 2


@for_each(
    ("name", "limit"),
    [(DEFECTS, 16), (CHOICES, 256), (PROBLEMS, 512), (SERIES, 64), ("nlp_person_recognition", 128)],
)
def test_how_long_answers_may_be(name: str, limit: int) -> None:
    assert questions.answer_limit(rows(name)[0], DEMO_SETTINGS) == limit
    assert questions.question(rows(name)[0], DEMO_SETTINGS).max_new_tokens == limit


@for_each("name", [DETECTION, TRACKING, SPEECH, POINTS])
def test_the_limit_of_media_tasks_is_that_of_their_questions(name: str) -> None:
    doc = rows(name)[0]
    assert questions.answer_limit(doc, DEMO_SETTINGS) == questions.question(doc, DEMO_SETTINGS).max_new_tokens > 0


def test_the_limit_is_told_without_the_media(tmp_path: Path) -> None:
    root = copied(tmp_path, "image/comprehension/Sign-Detection")
    for picture in (root / SET).rglob("*.png"):
        picture.unlink()
    given = {"data_root": str(root)}
    doc = rows(DETECTION, given)[0]
    assert questions.answer_limit(doc, Settings.of(given)) == questions.answer_limit(rows(DETECTION)[0], DEMO_SETTINGS)
    with pytest.raises(MediaError, match=r"0\.png"):
        questions.question(doc, Settings.of(given))


def test_the_limit_of_an_item_that_cannot_be_read(tmp_path: Path) -> None:
    root = copied(tmp_path, "image/comprehension/Sign-Detection", "nlp/Word-Problems")
    for folder in ("image/comprehension/Sign-Detection", "nlp/Word-Problems"):
        edit(root / SET / folder / "annotation.json", lambda content: content["data"].insert(0, 5))
    given = {"data_root": str(root)}
    assert questions.answer_limit(rows(DETECTION, given)[0], Settings.of(given)) == 16
    assert questions.answer_limit(rows(PROBLEMS, given)[0], Settings.of(given)) == 512
