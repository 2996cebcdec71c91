import pytest

from lmms_eval.models.chat_template import plain_context


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


def test_texts_stand_as_they_are_and_media_as_their_marks() -> None:
    turns = [
        {"role": "system", "content": [text("Be brief.")]},
        {"role": "user", "content": [{"type": "image"}, text("What?"), text("Say."), {"type": "image"}]},
    ]
    assert plain_context(turns, {"image": "<image>"}) == "Be brief.\n\n<image>What?\nSay.<image>"


def test_a_part_that_the_model_has_no_mark_for() -> None:
    turns = [{"role": "user", "content": [{"type": "image"}, text("What?")]}]
    with pytest.raises(ValueError, match="no mark for image"):
        plain_context(turns, {})
    assert plain_context(turns, {"image": ""}) == "What?", "its processor finds the place"
