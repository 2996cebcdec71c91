import numpy as np
import pytest
from PIL import Image

from lmms_eval.api.messages import build_user_turn
from lmms_eval.errors import ItemError, MediaError, TaskError
from lmms_eval.media.audio import encode_wav
from lmms_eval.tasks._task_utils.question import (
    doc_to_audio,
    doc_to_text,
    doc_to_text_reframed,
    doc_to_text_stripped,
    doc_to_visual,
    doc_to_visual_repeated,
    framed,
    option_lines,
    read_list,
)
from tests.cases import for_each


def test_a_frame_stands_around_the_question() -> None:
    settings = {"pre_prompt": "Q: ", "post_prompt": "\nShort."}
    assert doc_to_text({"question": " why? "}, settings) == "Q:  why? \nShort."
    assert doc_to_text_stripped({"question": " why? "}, settings) == "Q: why?\nShort."


def test_a_frame_takes_the_place_of_the_instruction_to_answer_yes_or_no() -> None:
    doc = {"question": " Is it red? Please answer yes or no."}
    assert doc_to_text_reframed(doc, {"pre_prompt": "", "post_prompt": "\nOne word."}) == "Is it red?\nOne word."
    assert doc_to_text_reframed(doc, {"pre_prompt": ""}) == doc_to_text_reframed(doc) == doc["question"].strip()


def test_without_settings_the_text_is_unchanged() -> None:
    assert framed(" text\n", None) == framed(" text\n", {"pre_prompt": None}) == " text\n"


def test_pictures_are_rgb_and_an_empty_column_is_none() -> None:
    (picture,) = doc_to_visual({"image": Image.new("L", (3, 2), 7)})
    assert (picture.mode, picture.size) == ("RGB", (3, 2))
    assert doc_to_visual({"image": None}) == []


def test_options_have_letters() -> None:
    assert option_lines(["red", 2]) == "A. red\nB. 2"


def test_a_picture_is_shown_as_often_as_a_setting_says() -> None:
    doc = {"image": Image.new("L", (2, 3))}
    assert len(doc_to_visual_repeated(doc)) == 1
    assert [picture.mode for picture in doc_to_visual_repeated(doc, {"num_image": 2})] == ["RGB", "RGB"]
    with pytest.raises(TaskError, match="num_image must be 1 or 2, not 3"):
        doc_to_visual_repeated(doc, {"num_image": 3})


@for_each(("held", "found"), [("['a', 1]", ["a", "1"]), (["a"], ["a"]), ("[]", [])])
def test_a_column_holds_a_list_or_its_text(held: object, found: list[str]) -> None:
    assert read_list({"options": held}, "options") == found


@for_each("held", ["a, b", "['a'", "{'a': 1}", None, "[" * 10_000])
def test_a_column_without_a_list_is_named(held: object) -> None:
    with pytest.raises(ItemError, match="column 'options' holds"):
        read_list({"options": held}, "options")


def test_a_sound_reaches_chat_models_as_a_sound() -> None:
    decoded = {"path": "a.wav", "array": np.zeros(4), "sampling_rate": 16000}
    assert doc_to_audio({"audio": decoded}) == [decoded]
    stored = {"bytes": encode_wav(np.zeros(8, np.float32), 16000), "path": "a.wav"}
    (sound,) = doc_to_audio({"audio": stored})
    assert (len(sound["array"]), sound["sampling_rate"]) == (8, 16000)
    named = doc_to_audio({"audio": {"bytes": None, "path": "a.wav"}})
    for visuals in ([sound], named):
        assert build_user_turn(visuals, "?")[0]["content"][0]["type"] == "audio"


def test_a_sound_that_is_absent_or_damaged_is_told() -> None:
    with pytest.raises(ItemError, match="'audio'"):
        doc_to_audio({"audio": None})
    for data in (b"", b"no sound"):
        with pytest.raises(MediaError):
            doc_to_audio({"audio": {"bytes": data, "path": "a.wav"}})
