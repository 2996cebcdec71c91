from __future__ import annotations

from lmms_eval.utils.picture_marks import MAX_DESCRIPTION_CHARS, WantedPicture, count_marks, in_words, split_marks
from tests.cases import for_each


@for_each(
    ("text", "pieces"),
    [
        ("no picture", ["no picture"]),
        ("", []),
        ("a <image>red kite</image> b", ["a ", WantedPicture("red kite"), " b"]),
        ("<image> one </image><image>two\nlines</image>", [WantedPicture("one"), WantedPicture("two\nlines")]),
        ("Step 1. Cut.\n<image>\nStep 2. Glue.\n[image]", [
            "Step 1. Cut.\n", WantedPicture("Step 1. Cut."), "\nStep 2. Glue.\n", WantedPicture("Step 2. Glue."),
        ]),
        ("<image> first", [" first"]),
        ("Cut. <image> then <IMAGE>glue</IMAGE>", ["Cut. ", WantedPicture("Cut."), " then ", WantedPicture("glue")]),
        ("a </image> b", ["a </image> b"]),
        ("x <image></image>", ["x ", WantedPicture("x")]),
    ],
)  # fmt: skip
def test_pieces(text: str, pieces: list[str | WantedPicture]) -> None:
    assert split_marks(text) == pieces
    assert count_marks(text) == sum(isinstance(piece, WantedPicture) for piece in pieces)


def test_a_placeholder_shows_the_end_of_a_long_text() -> None:
    text = "a" * 5000 + "the end"
    (wanted,) = (piece for piece in split_marks(f"{text}<image>") if isinstance(piece, WantedPicture))
    assert wanted.description == text[-MAX_DESCRIPTION_CHARS:]


def test_descriptions_in_words_are_no_marks() -> None:
    shown = in_words("a <image>kite</image> b <image> c [image]")
    assert shown == "a (picture: kite) b  c "
    assert count_marks(shown) == 0
