"""Prompts whose media cannot be opened are found out without a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lmms_eval.api.messages import ChatMessages
from lmms_eval.errors import MediaError
from lmms_eval.media.audio import encode_wav
from lmms_eval.models.baseline import Baseline, open_media
from tests.cases import for_each
from tests.media.draw import tone, write_video
from tests.models.fakes import FakeTask


def shown(*parts: dict[str, Any]) -> ChatMessages:
    return ChatMessages.model_validate({"messages": [{"role": "user", "content": [*parts]}]})


@pytest.fixture
def media(tmp_path: Path) -> dict[str, Path]:
    Image.new("RGB", (20, 10)).save(tmp_path / "a.png")
    write_video(tmp_path / "v.mp4", 20)
    (tmp_path / "s.wav").write_bytes(encode_wav(tone(), 8000))
    return {"image": tmp_path / "a.png", "video": tmp_path / "v.mp4", "audio": tmp_path / "s.wav"}


@pytest.mark.parametrize("kind", ["image", "video", "audio"])
def test_damaged_media_are_found(kind: str, media: dict[str, Path]) -> None:
    messages = shown({"type": "text", "text": "?"}, {"type": kind, "url": str(media[kind])})
    open_media(messages)  # as long as it is sound
    media[kind].write_bytes(media[kind].read_bytes()[:40])
    with pytest.raises(MediaError, match=media[kind].name):
        open_media(messages)


def test_a_frame_that_is_missing_is_found(media: dict[str, Path]) -> None:
    with pytest.raises(MediaError, match=r"gone\.png"):
        open_media(shown({"type": "video", "url": [str(media["image"]), Image.new("L", (4, 4)), "gone.png"]}))


@for_each(("arguments", "opens"), [({}, True), ({"no_media": True}, False), ({"strategy": "constant"}, False)])
def test_only_gold_answers_look_at_the_prompt(arguments: dict[str, Any], opens: bool) -> None:
    request = FakeTask([{"question": "q", "answer": "a"}]).request(0)
    built: list[int] = []

    def build() -> ChatMessages:
        built.append(1)
        return shown()

    Baseline(**arguments).prepare(request.with_messages(build))
    assert bool(built) is opens
