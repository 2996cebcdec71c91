import pytest
from msgspec.structs import replace

from lmms_eval.api.generation import RequestLimits
from lmms_eval.errors import MediaError

from . import folders
from .support import answers, assistant, converse, image, make, plain, refusal, reply, system, text, told, user, video

OWN = "I am a stub."


@pytest.fixture(scope="module")
def model(folder_of):
    return make("internvl", folder_of("internvl"))


def test_pictures_stand_in_their_places_and_several_are_numbered(model):
    assert told(model, user(text("PROMPT"))) == [OWN, [], "PROMPT", []]
    assert told(model, user(image(), text("PROMPT")))[2:] == ["<image>\nPROMPT", [1]]
    shown = told(model, user(text("A "), image(), text("B "), image("blue", (80, 40)), text("PROMPT")))
    assert shown[2:] == ["A Image-1: <image>\nB Image-2: <image>\nPROMPT", [1, 3]]


def test_a_video_is_numbered_frames_of_one_tile_each(folder_of):
    model = make("internvl", folder_of("internvl"), num_frame=3)
    shown = told(model, user(video("red", "green", "blue", "red", "blue"), text("PROMPT")))
    assert shown[2:] == ["Frame1: <image>\nFrame2: <image>\nFrame3: <image>\nPROMPT", [1, 1, 1]]
    assert reply(model, user(video("red", "green", "blue"), text("?"))).text == "red green blue"


def test_tiles_are_limited_for_a_picture_and_for_all_of_a_prompt(folder_of):
    wide = image("red", (400, 40))
    tiles = {}
    for most in ({}, {"max_num": 4}, {"max_num": 1}, {"total_max_num": 6}):
        model = make("internvl", folder_of("internvl"), **most)
        tiles[str(most)] = [told(model, user(*[wide] * count, text("PROMPT")))[3] for count in (1, 3)]
    assert tiles["{}"] == [[11], [11] * 3]
    assert tiles["{'max_num': 4}"] == [[5], [5] * 3]
    assert tiles["{'max_num': 1}"] == [[1], [1] * 3]
    assert tiles["{'total_max_num': 6}"] == [[7], [3] * 3]


def test_limits_of_a_request_take_the_place_of_the_arguments(folder_of):
    model, wide = make("internvl", folder_of("internvl"), max_num=12), image("red", (400, 40))
    assert model.media_limits >= {"tiles", "tiles_later", "total_tiles", "max_pixels", "fps"}

    def tiles(count, **limits):
        request = converse(0, [user(*[wide] * count, text("PROMPT"))])
        return list(model.prepare(replace(request, media=RequestLimits(**limits))).payload.counts)

    assert tiles(1, tiles=4) == [5]
    assert tiles(3, tiles=6, tiles_later=1) == [7, 1, 1]
    assert tiles(3, tiles=12, total_tiles=6) == [3] * 3


def test_pictures_that_the_prompt_numbers_are_not_numbered_again(model):
    parts = (text("Image-1: "), image(), text("Image-2: "), image(), text("PROMPT"))
    assert told(model, user(*parts))[2] == "Image-1: <image>\nImage-2: <image>\nPROMPT"


def test_the_side_of_a_tile_is_the_checkpoints(folder_of, monkeypatch):
    model = make("internvl", folder_of("internvl", force_image_size=64))
    prompt = model.prepare(converse(0, [user(image(), text("?"))])).payload
    assert tuple(prompt.tiles.shape) == (1, 3, 64, 64)


def test_a_literal_placeholder_stands_for_no_picture(model):
    shown = told(model, user(image(), text("PROMPT <image> <IMG_CONTEXT>")))
    assert shown[2] == "<image>\nPROMPT < image> < IMG_CONTEXT>"


def test_earlier_rounds_go_along_as_history(model):
    first, answer = user(image(), text("What? ")), assistant("A cat.")
    found = told(model, first, answer, user(text("And ")), user(image("blue"), text("PROMPT")))
    assert found[1:] == [
        [["Image-1: <image>\nWhat? ", "A cat."]],
        "And \nImage-2: <image>\nPROMPT",
        [1, 1],
    ]


def test_a_system_prompt_is_set_for_its_request_alone(model, folder_of):
    assert told(model, system("Be brief."), user(text("PROMPT")))[0] == "Be brief."
    assert told(model, user(text("PROMPT")))[0] == OWN
    given = make("internvl", folder_of("internvl"), system_prompt="Think.")
    assert told(given, system("Be brief."), user(text("PROMPT")))[0] == "Think."
    code = folders.INTERNVL.replace("self.system_message = ", "self.no_system_message = ")
    folder = folders.write(folder_of("internvl").parent / "speechless", "internvl", code)
    speechless = make("internvl", folder)
    assert refusal(speechless, system("Be brief."), user(text("?"))).startswith("bad_request: internvl: Model has no s")
    assert refusal(speechless, user(text("?"))) is None


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([user(text("a")), assistant("b")], "the user's first and last, not user, assistant"),
        ([assistant("b"), user(text("a"))], "not assistant, user"),
        ([user(text("a")), system("b"), user(text("a"))], "not user, system, user"),
        ([], "not none"),
        ([user(text("a")), {"role": "assistant", "content": [image()]}, user(text("b"))], "only the user's"),
        ([{"role": "system", "content": [image()]}, user(text("b"))], "only the user's"),
        ([user({"type": "audio", "url": "x.wav"})], "internvl takes text, image, video, not audio"),
    ],
)
def test_what_chat_cannot_express_is_refused(model, messages, said):
    found = refusal(model, *messages)
    assert found.startswith("bad_request: ")
    assert said in found


def test_a_picture_that_cannot_be_read_is_an_error_of_media(model):
    with pytest.raises(MediaError, match=r"none\.png"):
        reply(model, user({"type": "image", "url": "/none.png"}))


def test_generation_options_reach_chat_and_greedy_is_the_default(model):
    found = told(model, user(text("OPTIONS")), max_new_tokens=7, repetition_penalty=1.5)
    assert (found["max_new_tokens"], found["do_sample"], found["repetition_penalty"]) == (7, False, 1.5)
    assert found["temperature"] is None
    found = told(model, user(text("OPTIONS")), temperature=0.5, top_p=0.9)
    assert (found["do_sample"], found["temperature"], found["top_p"]) == (True, 0.5, 0.9)
    assert refusal(model, user(text("OPTIONS")), temprature=0.5) is None
    assert model.describe()["ignored_generation_options"] == ["temprature"]


def test_questions_of_one_picture_each_are_asked_together(folder_of):
    model = make("internvl", folder_of("internvl"), batch_size=4)
    asked = [converse(number, [user(image(colour, (40 + 40 * number, 40)), text("?"))])
             for number, colour in enumerate(("red", "green", "blue", "red", "green"))]  # fmt: skip
    found = answers(model, asked)
    assert [found[number].text for number in range(5)] == ["red", "green", "blue", "red", "green"]
    assert model.form.model.batches == [4]
    assert set(found[0].batch) == {f"task/{number}" for number in range(4)}
    assert found[4].batch == ()
    mixed = [[user(image(), text("?"))], [user(text("b"))], [user(image(), image(), text("?"))],
             [system("Hm."), user(image(), text("?"))]]  # fmt: skip
    found = answers(model, [converse(number, messages) for number, messages in enumerate(mixed)])
    assert [found[number].text for number in range(4)] == ["red", "no picture: b", "red red", "red"]
    assert model.form.model.batches == [4]


def test_reasoning_prompt_and_interleaved_pictures(folder_of):
    model = make("internvl", folder_of("internvl"), reasoning_prompt=" Think.", interleave_visuals=True)
    found = told(model, user(image(), text("PROMPT of <image 1>!")))
    assert found[2] == "PROMPT of <image>\n! Think."


def test_pictures_are_shrunk_before_they_are_cut(folder_of):
    model = make("internvl", folder_of("internvl"), max_pixels=100)
    prompt = model.prepare(converse(0, [user({"type": "image", "url": plain("red", (896, 896))})])).payload
    assert prompt.counts == (1,)
