"""Items of ``doc_to_visual`` as parts of a message."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from lmms_eval.api.messages import ChatMessages, build_user_turn, visual_to_content
from tests.cases import for_each

DECODED = {"path": "a.wav", "array": [0.0, 0.1], "sampling_rate": 16_000}
DECODER = SimpleNamespace(get_all_samples=list)
"""The interface of the audio decoder of ``datasets``."""


@for_each(
    ("visual", "kind"),
    [
        (DECODED, "audio"),
        (DECODER, "audio"),
        ({"bytes": b"RIFF", "path": "a.flac"}, "audio"),
        ({"bytes": b"\x89PNG", "path": "a.png"}, "image"),
        ({"bytes": b"ftyp", "path": "a.mp4"}, "video"),
        ({"bytes": b"ftyp", "path": None}, "video"),
        ({"bytes": b"\x89PNG\r\n\x1a\n", "path": None}, "image"),
        ({"bytes": b"\xff\xd8\xff\xe0", "path": "photo"}, "image"),
        ({"bytes": b"\xff\xd8\xff\xe0", "path": "a.mp4"}, "image"),
        ({"bytes": b"RIFF\0\0\0\0WAVE", "path": None}, "audio"),
        ({"bytes": b"\0\0\0\x1cftypisom", "path": None}, "video"),
        ({"bytes": b"\0\0\0\x1cftypisom", "path": "a.m4a"}, "audio"),
        (b"\x89PNG\r\n\x1a\n", "image"),
        (bytearray(b"ID3\x04"), "audio"),
        ({"type": "audio", "bytes": b"RIFF", "path": None}, "audio"),
    ],
)
def test_stored_media_go_whole_by_their_kind(visual: Any, kind: str) -> None:
    assert visual_to_content(visual) == {"type": kind, "url": visual}


@for_each(
    ("visual", "part"),
    [
        ({"bytes": None, "path": "a.wav"}, {"type": "audio", "url": "a.wav"}),
        ({"bytes": None, "path": "a.mp4"}, {"type": "video", "url": "a.mp4"}),
        ({"type": "audio", "path": "p"}, {"type": "audio", "url": "p"}),
        ({"url": "u"}, {"type": "video", "url": "u"}),
    ],
)
def test_of_media_that_lie_elsewhere_the_place_goes(visual: Any, part: Any) -> None:
    assert visual_to_content(visual) == part


def test_media_stand_before_the_text() -> None:
    (turn,) = build_user_turn([DECODED], "What is said?\n")
    assert turn["content"] == [{"type": "audio", "url": DECODED}, {"type": "text", "text": "What is said?\n"}]


def test_a_text_needs_no_type() -> None:
    content = [{"type": "image", "url": "a.png"}, {"text": "what?"}, {"type": "text", "text": "and?"}]
    made = ChatMessages(messages=[{"role": "user", "content": content}])
    assert [part.type for part in made.messages[0].content] == [
        "image",
        "text",
        "text",
    ] and made.text() == "what?\nand?"
    assert content[1] == {"text": "what?"}


@for_each("part", [{"text": 3}, {"url": "a.png"}, {"type": None, "text": "x"}, "x", {}])
def test_other_parts_without_a_type_are_refused(part: Any) -> None:
    with pytest.raises(ValidationError):
        ChatMessages(messages=[{"role": "user", "content": [part]}])
