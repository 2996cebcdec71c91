from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from lmms_eval.compat.plugins.delegating import read_messages
from lmms_eval.errors import ModelError
from lmms_eval.media import load_rgb
from lmms_eval.protocol import ChatMessages
from tests.cases import for_each

TURNS = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["system", "user", "assistant"]),
            "content": st.lists(
                st.one_of(
                    st.fixed_dictionaries({"type": st.just("text"), "text": st.text()}),
                    st.fixed_dictionaries({"type": st.just("image"), "url": st.just("https://example.org/a.png")}),
                )
            ),
        }
    ),
    min_size=1,
)


@given(TURNS)
def test_what_was_written_is_read(turns: list[dict[str, Any]]) -> None:
    messages = ChatMessages(messages=turns)  # type: ignore[arg-type]
    assert read_messages(messages.to_openai_messages()).model_dump() == messages.model_dump()


def test_pictures_come_back_pixel_by_pixel() -> None:
    picture = Image.radial_gradient("L").resize((9, 7)).convert("RGB")
    written = ChatMessages(
        messages=[{"role": "user", "content": [{"type": "image", "url": picture}]}]  # type: ignore[list-item]
    ).to_openai_messages()
    (image,), _, _ = read_messages(written).extract_media()
    assert load_rgb(image).tobytes() == picture.tobytes()


@for_each(
    ("part", "kind", "url"),
    [
        ({"type": "image_url", "image_url": "a.png"}, "image", "a.png"),
        ({"type": "video_url", "video_url": {"url": "file:///a.mp4"}}, "video", "file:///a.mp4"),
        ({"type": "audio_url", "audio_url": {"url": "a.wav"}}, "audio", "a.wav"),
        (
            {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}},
            "audio",
            "data:audio/wav;base64,QQ==",
        ),
    ],
)
def test_parts_of_all_kinds(part: dict[str, Any], kind: str, url: str) -> None:
    (message,) = read_messages([{"role": "user", "content": [part]}]).messages
    (found,) = message.content
    assert (found.type, found.url) == (kind, url)  # type: ignore[union-attr]


def test_a_content_may_be_a_text() -> None:
    assert read_messages([{"role": "user", "content": "why?"}]).text() == "why?"


@for_each("part", [{"type": "smell"}, {"type": "image_url"}, {}])
def test_parts_that_nobody_knows(part: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="known are text, input_audio, image_url"):
        read_messages([{"role": "user", "content": [part]}])
