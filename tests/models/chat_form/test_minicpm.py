import numpy as np
import pytest

from lmms_eval.errors import ModelError

from .support import assistant, image, make, refusal, reply, system, text, told, user, video

SOUND = {"type": "audio", "url": {"array": np.zeros(8000, np.float32), "sampling_rate": 8000}}


@pytest.fixture(scope="module")
def model(folder_of):
    return make("minicpm_v", folder_of("minicpm_v"))


@pytest.fixture(scope="module")
def early(folder_of):
    return make("minicpm_v", folder_of("early_minicpm"))


def test_contents_are_pictures_and_texts_in_order(model):
    found = told(model, user(image(), text("a "), text("b"), image("blue"), text("PROMPT (<image>./</image>)")))
    assert found == ["", [["user", ["Image", "a b", "Image", "PROMPT ( <image>./</image>)"]]]]
    assert reply(model, user(image("green"), image(), text("?"))).text == "green red"
    assert reply(model, user(text("hello"))).text == "no picture: hello"


def test_rounds_and_system_prompt(model):
    found = told(model, system("Be brief."), user(image(), text("a")), assistant("b"), user(text("PROMPT")))
    assert found == ["Be brief.", [["user", ["Image", "a"]], ["assistant", ["b"]], ["user", ["PROMPT"]]]]


def test_frames_are_pictures_without_numbers_and_with_fewer_slices(model, folder_of):
    found = told(model, user(video("red", "blue"), text("OPTIONS")))
    assert (found["use_image_id"], found["max_slice_nums"]) == (False, 2)
    found = told(model, user(image(), text("OPTIONS")))
    assert (found["use_image_id"], found["max_slice_nums"]) == (None, None)
    given = make("minicpm_v", folder_of("minicpm_v"), max_slice_nums=1, max_frames_num=2)
    assert told(given, user(video("red"), text("OPTIONS")))["max_slice_nums"] == 1
    assert reply(given, user(video("red", "green", "blue"), text("?"))).text == "red blue"


def test_greedy_is_one_beam(model):
    found = told(model, user(text("OPTIONS")), max_new_tokens=9)
    assert (found["sampling"], found["num_beams"], found["max_new_tokens"]) == (False, 1, 9)
    assert "temperature" not in found
    found = told(model, user(text("OPTIONS")), do_sample=True, temperature=0.7, num_beams=2)
    assert (found["sampling"], found["temperature"], found["num_beams"]) == (True, 0.7, 2)


def test_sounds_are_for_checkpoints_that_hear(model, folder_of):
    assert refusal(model, user(SOUND, text("?"))) == "bad_request: minicpm_v takes text, image, video, not audio"
    hearing = make("minicpm_o", folder_of("minicpm_v", init_audio=True))
    assert reply(hearing, user(SOUND, text("?"))).text == "sound of 16000"


def test_only_the_voice_is_left_out(folder_of):
    folder = folder_of("minicpm_v", init_tts=True, init_audio=True)
    assert make("minicpm_o", folder).form.model.config.init_tts is False


def test_thinking_is_for_checkpoints_whose_chat_knows_it(folder_of):
    model = make("minicpm_v", folder_of("minicpm_v"), enable_thinking=True)
    assert told(model, user(text("OPTIONS")))["enable_thinking"] is True
    with pytest.raises(ModelError, match="chat of Model has no argument enable_thinking"):
        make("minicpm_v", folder_of("early_minicpm"), enable_thinking=True)


def test_early_checkpoints_take_one_picture_apart_from_the_messages(early):
    assert reply(early, user(image("blue"), text("?"))).text == "blue"
    assert told(early, user(image(), text("a")), assistant("b"), user(text("PROMPT"))) == [
        {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "PROMPT"},
    ]  # fmt: skip
    assert "takes one picture, not 2" in refusal(early, user(image(), image()))
    assert "takes text, image, not video" in refusal(early, user(video("red")))
    assert "takes no system prompt" in refusal(early, system("Hi"), user(text("?")))
    assert "no generation option repetition_penalty" in refusal(early, user(text("?")), repetition_penalty=1.1)
    assert told(early, user(text("OPTIONS"))) == {"sampling": False}
