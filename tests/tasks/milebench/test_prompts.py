from __future__ import annotations

from typing import Any

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.milebench.prompts import (
    CHARACTERS,
    WORDS,
    ContextBudget,
    PlacedPicture,
    PromptParts,
    by_index,
    official,
)
from tests.cases import for_each


def sample(context: str, images: int = 2, **changes: Any) -> PromptParts:
    given = {"dataset": "TQA", "instruction": "Look.", "images": tuple(f"{n}.png" for n in range(1, images + 1))}
    return PromptParts(sample_id=7, context=context, **{**given, **changes})


def shown(parts: Any) -> list[str]:
    """Parts with pictures as their numbers in brackets."""
    return [f"[{part.path[2:-4]}]" if isinstance(part, PlacedPicture) else part for part in parts]


def test_official_pictures_go_by_position() -> None:
    made = official(sample("First {image#2} then {table#1}?", choices=("up", "down")), "T")
    tail = "?\nChoice list: \nA. up\nB. down\nYour answer is: "
    assert made.text == f"Look.\nFirst <ImageHere> then <ImageHere>{tail}"
    assert shown(made.parts) == ["Look.\nFirst ", "[1]", " then ", "[2]", tail]
    assert made.simple_text == f"Look.\nFirst <image> then <image>{tail}"


def test_a_marker_without_a_picture_shows_nothing() -> None:
    made = official(sample("{image#1} and {image#1} again", images=1), "T")
    assert made.text.count("<ImageHere>") == 2
    assert shown(made.parts) == ["Look.\n", "[1]", " and  again"]


def test_a_context_without_room_keeps_its_end() -> None:
    made = official(sample("one {image#1} two {image#2} three"), "T", ContextBudget(20, 5, CHARACTERS))
    assert shown(made.parts) == ["Look.\n", "[2]", " three"]


def test_the_room_for_pictures_counts_without_any_too() -> None:
    made = official(sample("a<ImageHere>b", images=0), "T", ContextBudget(8, 5, CHARACTERS))
    assert made.text == "Look.\nb"


def test_by_index_every_picture_stands_where_it_is_named() -> None:
    made = by_index(sample("First {image#2}, {table#1}, {image#2}; {image#9}?", images=3), "T")
    assert shown(made.parts) == ["Look.\n", "[3]", "First ", "[2]", ", ", "[1]", ", ", "[2]", "; {image#9}?"]
    assert made.images == ("T/3.png", "T/2.png", "T/1.png", "T/2.png")
    assert made.text == "Look.\n<ImageHere>First <ImageHere>, <ImageHere>, <ImageHere>; {image#9}?"


@for_each(
    ("room", "wanted"),
    [
        (1000, ["Look.\n", "[1]", " b c ", "[2]", " d e?"]),
        (1 + 2 + 4 + 3 + 4, ["Look.\n", "[1]", " b c ", "[2]", " d e?"]),
        (1 + 2 + 4 + 3 + 3, ["Look.\n b c ", "[2]", " d e?"]),
        (1 + 2 + 4 + 2, ["Look.\n c ", "[2]", " d e?"]),
        (1 + 2 + 4, ["Look.\n", "[2]", " d e?"]),
        (1 + 2 + 3, ["Look.\n d e?"]),
        (1 + 1, ["Look.\n e?"]),
        (1, ["Look.\n"]),
        (0, ["Look.\n"]),
    ],
)
def test_by_index_keeps_the_instruction_and_the_end(room: int, wanted: list[str]) -> None:
    made = by_index(sample("{image#1} b c {image#2} d e?"), "T", ContextBudget(room, 4, WORDS))
    assert shown(made.parts) == wanted


def test_sheets_stand_in_front() -> None:
    one = official(sample("{image#1} {image#2}", sheets=("7-0.jpg",)), "T/images", combine=1)
    assert one.text == "<ImageHere>\nLook.\n<Image 1>  <Image 2> "
    assert one.images == ("T/combined_1_images/7-0.jpg",)
    two = sample("{image#1} {image#2}", sheets=("7-0.jpg", "7-1.jpg"))
    with pytest.raises(DataError, match="2 sheets, and the official prompt takes one"):
        official(two, "T/images", combine=2)
    made = by_index(two, "T/images", combine=2)
    assert made.text == "<ImageHere><ImageHere>\nLook.\n<Image 1> <Image 2>"
    assert made.images == ("T/combined_2_images/7-0.jpg", "T/combined_2_images/7-1.jpg")
    with pytest.raises(DataError, match="no combined_1_images"):
        by_index(sample("?"), "T/images", combine=1)


def test_options_of_the_retrieval_set_have_no_letters() -> None:
    assert "\nimage 1\nimage 2\n" in sample("?", dataset="GPR1200", choices=("image 1", "image 2")).question
