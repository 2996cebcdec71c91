"""Items of ``doc_to_visual`` as parts of a message."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lmms_eval.api.messages import build_user_turn, visual_to_content

DECODED = {"path": "a.wav", "array": [0.0, 0.1], "sampling_rate": 16_000}
DECODER = SimpleNamespace(get_all_samples=list)
"""The shape of what the library ``datasets`` hands out for a sound."""


@pytest.mark.parametrize(
    ("visual", "kind"),
    [
        (DECODED, "audio"),
        (DECODER, "audio"),
        ({"bytes": b"RIFF", "path": "a.flac"}, "audio"),
        ({"bytes": b"\x89PNG", "path": "a.png"}, "image"),
        ({"bytes": b"ftyp", "path": "a.mp4"}, "video"),
        ({"bytes": b"ftyp", "path": None}, "video"),
        ({"type": "audio", "bytes": b"RIFF", "path": None}, "audio"),
    ],
)
def test_stored_media_go_whole_by_their_kind(visual: Any, kind: str) -> None:
    assert visual_to_content(visual) == {"type": kind, "url": visual}


@pytest.mark.parametrize(
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
