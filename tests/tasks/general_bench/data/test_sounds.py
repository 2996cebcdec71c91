from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import DataError
from tests.cases import for_each
from tests.tasks.general_bench.data.kit import read


def sound(text: Any, file: str = "a/1.wav") -> dict[str, Any]:
    return {"id": 1, "input": {"audio_file": file, "prompt": "Which?"}, "output": {"text": text}}


@for_each(
    ("task", "text", "reference"),
    [
        ("Accent Classification", "Scottish", "Scottish"),
        ("Acoustic Scene Recognition", "Street Traffic", "street traffic"),
        ("Animal Sound Detection", "Dog", "dog"), ("Speech Command", "YES", "yes"),
        ("Speech Emotion Recognition", "Happy", "happy"), ("Vocal Sound Classification", "Sneeze", "sneeze"),
        ("Vocal Technique Detection", ["Vibrato", "Trill"], ["vibrato", "trill"]), ("Music Pitch Analysis", 64, "64"),
        ("Music Genre Classification", "Rock", "Rock"), ("Open-ended Audio Question Answering", ["A", "b"], ["A", "b"]),
        ("Bird Sound Detection", 1, "Yes"), ("Bird Sound Detection", 0, "No"), ("Bird Sound Detection", 2, "No"),
        ("Bird Sound Detection", "1", "Yes"), ("Bird Sound Detection", " no", "No"),
        ("Note Qualities Analysis", ["bright", "fast_decay"], "bright,fast_decay"),
        ("Note Qualities Analysis", "bright", "bright"),
        ("Long Audio Captioning", ["A dog.", "Dogs"], ["A dog.", "Dogs"]),
    ],
)  # fmt: skip
def test_references_of_the_classes(tmp_path: Path, task: str, text: Any, reference: Any) -> None:
    item = read(task, sound(text), tmp_path)
    assert item.reference == reference and item.form == "text" and item.prompt == "Which?" and item.id == 1
    assert item.media[0].kind == "audio" and item.media[0].paths == (tmp_path / "audios" / "a" / "1.wav",)


LABELS = {
    "action": {"0": "activate", "1": "bring"},
    "object": ["lights", "music", "shoes"],
    "location": {"kitchen": 0, "none": 1},
}


@for_each("text", [[1, 2, 0], "1, 2, 0", "[1 2 0]", ["1", "2", "0"]])
def test_intents_are_looked_up_each_in_its_own_map(tmp_path: Path, text: Any) -> None:
    assert read("Intent Classification", sound(text), tmp_path, intent_label=LABELS).reference == "bring,shoes,kitchen"


@for_each(
    ("text", "head", "message"),
    [
        ([1, 2], {"intent_label": LABELS}, "three class numbers"),
        ([1, 2, 7], {"intent_label": LABELS}, "`location` has no class 7"),
        ([1, 2, "kitchen"], {"intent_label": LABELS}, "'kitchen' is no class number"),
        ([1, 2, True], {"intent_label": LABELS}, "True is no class number"),
        ([1, 2, 0], {}, "`intent_label` is None; an object"),
        ([1, 2, 0], {"intent_label": {**LABELS, "object": 3}}, "`object` is 3; a map of class numbers"),
    ],
)
def test_intents_that_cannot_be_looked_up(tmp_path: Path, text: Any, head: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read("Intent Classification", sound(text), tmp_path, **head)


@for_each(
    ("task", "turned"),
    [("Music Genre Classification", True), ("Speech Command", True), ("Vocal Technique Detection", True),
     ("Accent Classification", False)],
)  # fmt: skip
def test_backslashes(tmp_path: Path, task: str, turned: bool) -> None:
    path = read(task, sound("x", "a\\1.wav"), tmp_path).media[0].paths[0]
    assert path == tmp_path / "audios" / ("a/1.wav" if turned else "a\\1.wav")


def test_files_beside_the_annotation(tmp_path: Path) -> None:
    (tmp_path / "1.wav").touch()
    assert read("Speech Command", sound("x", "1.wav"), tmp_path).media[0].paths == (tmp_path / "1.wav",)


def test_the_closed_set(tmp_path: Path) -> None:
    raw = sound("x")
    for output in (None, {}, ""):
        assert read("Bird Sound Detection", {**raw, "output": output}, tmp_path).reference is None
    del raw["output"]
    assert read("Bird Sound Detection", raw, tmp_path).reference is None


@for_each(
    ("raw", "message"),
    [
        ([1], r"an item is \[1\]"),
        ({**sound("x"), "id": None}, "an item has no `id`"),
        ({**sound("x"), "id": [1]}, r"the id \[1\] is no text or number"),
        ({**sound("x"), "input": ["a"]}, r"item 1: `input` is \['a'\]; an object"),
        ({**sound("x"), "input": {"prompt": "p"}}, "item 1: `input`: `audio_file` is missing"),
        ({**sound("x"), "input": {"audio_file": "a"}}, "item 1: `input`: `prompt` is missing"),
        (sound("x", "../a"), "leads out of the task's folder"),
        (sound({"a": 1}), "item 1: `output`: `text` is {'a': 1}"),
        ({**sound("x"), "output": {"answer": "x"}}, "item 1: `output`: `text` is missing"),
        ({**sound("x"), "output": 3}, "item 1: `output` is 3; an object"),
    ],
)  # fmt: skip
def test_faulty_items_name_item_and_key(tmp_path: Path, raw: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read("Speech Command", raw, tmp_path)


def test_birds_that_are_neither(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="0, 1, Yes or No"):
        read("Bird Sound Detection", sound("sparrow"), tmp_path)
