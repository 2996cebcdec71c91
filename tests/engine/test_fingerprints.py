from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from lmms_eval.api.messages import ChatMessages, build_user_turn
from lmms_eval.engine.prompts import content_fingerprint, message_fingerprint, text_fingerprint
from lmms_eval.errors import MediaError


def turn(text: str, *pictures: object) -> ChatMessages:
    return ChatMessages(messages=build_user_turn(list(pictures), text))


def test_texts_and_roles_tell_prompts_apart() -> None:
    for fingerprint in (message_fingerprint, content_fingerprint):
        found = {fingerprint(turn(text)) for text in ("a", "b", "a")}
        assert len(found) == 2 and all(len(one) == 16 for one in found)
    assert text_fingerprint("a\ud800") != text_fingerprint("a")


def test_pictures_are_told_by_reference_or_by_content(tmp_path: Path) -> None:
    first, second = tmp_path / "1.png", tmp_path / "2.png"
    for path in (first, second):
        Image.new("RGB", (4, 4), "red").save(path)
    one, other = turn("a", str(first)), turn("a", str(second))
    assert content_fingerprint(one) == content_fingerprint(other)
    assert message_fingerprint(one) != message_fingerprint(other)
    before = content_fingerprint(one), message_fingerprint(one)
    Image.new("RGB", (4, 4), "blue").save(first)
    assert content_fingerprint(one) != before[0]
    assert message_fingerprint(one) == before[1]
    first.unlink()
    with pytest.raises(MediaError):
        content_fingerprint(one)
