"""Texts with pictures, and pictures by their bytes."""

from __future__ import annotations

import copy
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.api.interleaved import InterleavedText, cut_parts, generated_image, media_type_of, response_text
from lmms_eval.api.request import GeneratedImage, Part, Response
from lmms_eval.api.task import Answer
from lmms_eval.errors import MediaError
from lmms_eval.filters.reasoning import strip_reasoning_tags
from tests.cases import for_each
from tests.painting import png

A, B = generated_image(png(1)), generated_image(png(2))
PARTS = st.lists(st.text(" \nab<>", max_size=4) | st.sampled_from([A, B]), max_size=6)


@for_each(
    ("data", "name"),
    [
        (png(0), "image/png"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"GIF89a....", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\0\0\0\0WAVEfmt ", None),
        (b"<svg/>", None),
        (b"", None),
    ],
)
def test_the_type_of_a_picture_is_told_by_its_bytes(data: bytes, name: str | None) -> None:
    assert media_type_of(data) == name
    if name is None:
        with pytest.raises(MediaError, match="no PNG, JPEG, WebP or GIF"):
            generated_image(data)
    else:
        image = generated_image(data)
        assert image == GeneratedImage(hashlib.sha256(data).hexdigest(), name)
        assert image.file_name == f"{image.sha256}.{name.removeprefix('image/')}"


def test_it_is_a_text_for_everything_that_takes_one() -> None:
    text = InterleavedText(["The ", A, "", "cat", B])
    assert text == "The cat" and hash(text) == hash("The cat") and text.lower() == "the cat"
    assert text.parts == ("The ", A, "cat", B) and text.images == (A, B)
    again = copy.deepcopy(text)
    assert (again, again.parts) == (text, text.parts)
    assert type(str(text)) is str


@given(PARTS)
def test_strip_is_that_of_the_text_and_keeps_every_picture(parts: list[Part]) -> None:
    text = InterleavedText(parts)
    stripped = text.strip()
    assert stripped == str(text).strip()
    assert isinstance(stripped, InterleavedText) and stripped.images == text.images
    assert "".join(part for part in stripped.parts if isinstance(part, str)) == stripped


def test_strip_of_characters_is_a_plain_text() -> None:
    assert type(InterleavedText(["xax", A]).strip("x")) is str


def test_pictures_within_the_thoughts_go_with_them() -> None:
    text = InterleavedText(["<think>hm ", A, "</think> the answer ", B, " is\ue000 ", A, " "])
    left = text.edited(strip_reasoning_tags)
    assert left == "the answer  is\ue000 "  # the last blank precedes a picture
    assert isinstance(left, InterleavedText) and left.parts == ("the answer ", B, " is\ue000 ", A)
    assert left.strip() == strip_reasoning_tags(str(text))
    plain = InterleavedText(["<think>", A, "</think>x"]).edited(strip_reasoning_tags)
    assert (plain, type(plain)) == ("x", str)


@for_each(
    ("length", "kept"),
    [
        (0, (A, "")),
        (2, (A, "on")),
        (3, (A, "one", B, "")),
        (5, (A, "one", B, "tw")),
        (6, (A, "one", B, "two", A)),
    ],
)
def test_cut_at_a_place_of_the_text(length: int, kept: tuple[Part, ...]) -> None:
    assert cut_parts([A, "one", B, "two", A], length) == kept


def test_what_a_response_says() -> None:
    assert type(response_text(Response("r", text="plain"))) is str
    assert response_text(Response("r")) == ""
    both = response_text(Response.interleaved("r", ["a", A]))
    assert isinstance(both, InterleavedText) and both.parts == ("a", A)
    assert Response.interleaved("r", ["a", "b"]) == Response("r", text="ab")


def test_the_parts_of_an_answer() -> None:
    text = InterleavedText(["a", A])
    assert Answer(text).parts == ("a", A)
    assert Answer(["first", text]).parts == ("a", A)
    assert Answer("a").parts == Answer([[1.5, True]]).parts == Answer(None).parts == ()
