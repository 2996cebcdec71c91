from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lmms_eval.errors import MediaError
from lmms_eval.media import encode_wav, load_audio, probe
from lmms_eval.tasks.controls.changes import BlankMedia, NoMedia, OtherMedia
from tests.media.draw import write_video


@pytest.fixture
def turns(tmp_path: Path) -> list[dict[str, Any]]:
    """A conversation with a picture, a video and a sound."""
    sound = tmp_path / "noise.wav"
    sound.write_bytes(encode_wav(np.ones(800, np.float32), 8000))
    content = [
        {"type": "image", "url": Image.new("RGB", (4, 3), "red")},
        {"type": "text", "text": "<image><video> and <image 2>: what?"},
        {"type": "video", "url": str(write_video(tmp_path / "clip.mp4", 5)), "start_time": 1.0},
    ]
    return [
        {"role": "user", "content": content},
        {"role": "assistant", "content": [{"type": "audio", "url": str(sound)}]},
    ]


def test_without_media_a_turn_keeps_its_place_and_its_text(turns: list[dict[str, Any]]) -> None:
    assert NoMedia().turns(turns) == [
        {"role": "user", "content": [{"type": "text", "text": " and <image 2>: what?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": ""}]},
    ]
    assert NoMedia().visuals([turns[0]["content"][0]["url"], turns[0]["content"][2]["url"]]) == []


def test_blank_media_are_of_the_same_kind_and_size(turns: list[dict[str, Any]]) -> None:
    user, other = BlankMedia().turns(turns)
    image, text, video = user["content"]
    assert (image["url"].size, image["url"].getpixel((0, 0))) == ((4, 3), (127, 127, 127))
    assert (text, video["start_time"]) == (turns[0]["content"][1], 1.0)
    assert probe(video["url"], counts=True).frames == 5
    assert len(load_audio(other["content"][0]["url"]).samples) == 800
    paths = BlankMedia().visuals([turns[0]["content"][2]["url"]])
    assert isinstance(paths[0], str) and paths == [video["url"]]


def test_media_of_a_donor_keep_the_number_of_places(turns: list[dict[str, Any]]) -> None:
    given = [{"type": "image", "url": "a.png"}, {"type": "image", "url": "b.png"}]
    user, other = OtherMedia(lambda: iter([[], given])).turns(turns)  # the first donor has none
    media = [part["url"] for turn in (user, other) for part in turn["content"] if part["type"] != "text"]
    assert media == ["a.png", "b.png", "a.png"]
    texts = [{"role": "user", "content": [{"type": "text", "text": "no picture"}]}]
    assert OtherMedia(lambda: iter(())).turns(texts) == texts
    with pytest.raises(MediaError, match="no other document"):
        OtherMedia(lambda: iter(())).turns(turns)
