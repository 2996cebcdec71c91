from __future__ import annotations

from typing import Any

from PIL import Image

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import SentMedia, SentMessage
from lmms_eval.engine.prompts import messages_with, outline
from lmms_eval.media.sent import FRAME, Frame

FIRST, SECOND = SentMedia("image", path="/a.png"), SentMedia("image", path="/b.png")
FILM = SentMedia("video", path="/v.mp4")


def user(*content: Any) -> ChatMessages:
    parts = [{"type": "text", "text": one} if isinstance(one, str) else one for one in content]
    return ChatMessages.model_validate({"messages": [{"role": "user", "content": parts}]})


def image(url: Any = "/a.png") -> dict[str, Any]:
    return {"type": "image", "url": url}


def frame(number: int) -> dict[str, Any]:
    picture = Image.new("RGB", (2, 2))
    picture.info[FRAME] = Frame(FILM, number, number / 2)
    return image(picture)


def parts(messages: ChatMessages, context: str, *sent: SentMedia) -> list[dict[str, Any]]:
    found = outline(messages, context)
    assert found is not None
    (message,) = messages_with(found, sent)
    assert SentMessage.from_dict(message.to_dict()).to_dict() == message.to_dict()
    return list(message.to_dict()["content"])


def test_the_prompts_text_alone_needs_no_outline() -> None:
    assert outline(user("What is it?"), "What is it?") is None
    assert outline(user("What is it?"), "What was it?") is not None
    system = ChatMessages.model_validate({"messages": [{"role": "system", "content": [{"type": "text", "text": "x"}]}]})
    assert outline(system, "x") is not None


def test_texts_are_told_by_their_place_in_the_prompt() -> None:
    context = "Long enough a text <image> and then another one"
    assert parts(user("Long enough a text ", image(), " and then another one"), context, FIRST) == [
        {"input": [0, 19]}, {"media": 0}, {"input": [26, 47]},
    ]  # fmt: skip
    assert parts(user("Long enough a text?", image(), "short"), context, FIRST) == [
        {"text": "Long enough a text?"}, {"media": 0}, {"text": "short"},
    ]  # fmt: skip


def test_a_medium_that_is_sent_twice_is_one() -> None:
    assert parts(user(image(), image("/b.png"), image()), "", FIRST, SECOND, FIRST) == [
        {"media": 0}, {"media": 1}, {"media": 0},
    ]  # fmt: skip


def test_media_that_do_not_fit_what_was_noted_are_not_guessed() -> None:
    video = {"type": "video", "url": "/v.mp4"}
    assert parts(user(image(), image("/b.png"), video), "", FIRST, FILM) == [
        {"type": "image"}, {"type": "image"}, {"media": 1},
    ]  # fmt: skip
    assert parts(user(image()), "") == [{"type": "image"}]


def test_frames_in_a_row_are_the_video_and_those_between_texts_stand_alone() -> None:
    assert parts(user(frame(0), frame(4), frame(8), "What happens?"), "", FILM) == [
        {"media": 0}, {"text": "What happens?"},
    ]  # fmt: skip
    assert parts(user("1:", frame(0), "2:", frame(4), image()), "", FILM, FIRST) == [
        {"text": "1:"}, {"media": 0, "frame": 0}, {"text": "2:"}, {"media": 0, "frame": 1}, {"media": 1},
    ]  # fmt: skip
