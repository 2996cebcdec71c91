import json
import time
import typing

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.api.interleaved import InterleavedText
from lmms_eval.api.request import GeneratedImage
from lmms_eval.tasks.general_bench.items import Form
from lmms_eval.tasks.general_bench.prompts.replies import extract_media, last_number
from tests.cases import for_each
from tests.tasks.general_bench.prompts.media_kit import an_item, frames
from tests.tasks.megabench.fuzzing import MEGABYTE

FORMS = typing.get_args(Form)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.sampled_from(["bbox", "mask", "frame", "1"]), inner),
    max_leaves=20,
)
"""Values near to answers."""
REPLIES = st.text(alphabet=st.sampled_from("[]{},:\"'\\ \n-.eN1234abx<>`"), max_size=60) | JSON.map(json.dumps)


def shapes(form):
    return an_item("Ball Tracking", form)


def picture(name):
    return GeneratedImage("0" * 64, "image/png", path=name)


def test_text_is_trimmed_and_keeps_its_case():
    assert extract_media(an_item("Music Genre Classification"), " Rock.\n") == "Rock."


def test_text_is_lower_cased_where_the_reference_is():
    assert extract_media(an_item("Animal Sound Detection"), " Dog ") == "dog"
    assert extract_media(an_item("Environment Sound Recognition"), "Rain") == "Rain"


def test_answers_of_object_matching_end_at_the_first_tag():
    assert extract_media(an_item("Color Aware Object Matching"), " B <p>red</p> [SEG]") == "B"
    assert extract_media(an_item("Color Aware Object Matching"), "<p>B") == ""
    assert extract_media(an_item("Car Model Matching"), "a < b") == "a < b"


@for_each(
    ("text", "number"),
    [
        ("There are 23 people.", 23),
        ("12 + 11 = 23", 23),
        ("1,234", 1234),
        ("10-15", 15),
        ("-7", -7),
        ("0.25", 0.25),
        ("about 1.5e3", 1500.0),
        ("none", None),
        ("H2O", None),
        ("9" * 50, None),
        ("9e999", None),
    ],
)
def test_numbers(text, number):
    assert last_number(text) == number
    assert extract_media(an_item("Crowd Counting", "number"), text) == (text if number is None else number)


def test_boxes_are_read_from_the_last_list_that_holds_some():
    reply = 'First try [[0, 0, 1, 1, "x"]]. Better:\n```json\n[[1, 2, 3, 4, "cat"]]\n```\nSee [1].'
    assert extract_media(shapes("boxes"), reply) == [[1, 2, 3, 4, "cat"]]
    assert extract_media(shapes("boxes"), "I see no [SEG].") == "I see no [SEG]."
    assert extract_media(shapes("boxes"), "[]") == []


def test_a_reply_in_another_form_stays_as_text():
    for form in ("boxes", "tube", "mask", "masks", "instances", "triplets"):
        assert extract_media(shapes(form), " a cat [0.5] ") == "a cat [0.5]"


def test_frames_in_between_follow_from_the_length_of_the_video(tmp_path):
    item = an_item("Ball Tracking", "tube", "The ball.", (frames(tmp_path / "f", 5),))
    assert extract_media(item, "[[0, [0, 0, 2, 2]], [4, [4, 4, 2, 2]]]") == [[n, n, 2, 2] for n in range(5)]
    gone = an_item("Ball Tracking", "tube", "The ball.", (frames(tmp_path / "g", 0),))
    assert extract_media(gone, "[[0, [0, 0, 2, 2]], [1, null]]") == [[0, 0, 2, 2], None]


def test_a_path_stays_a_path():
    assert extract_media(shapes("depth"), " out/1.npz\n") == "out/1.npz"
    assert extract_media(shapes("video"), "`out/1.mp4`") == "out/1.mp4"
    assert extract_media(shapes("mask"), "out/1.png") == "out/1.png"


def test_the_last_generated_picture_is_the_answer():
    reply = InterleavedText(("A sketch:", picture("a.png"), " and [[1, 2, 3, 4]]", picture("b.png")))
    assert extract_media(shapes("image"), reply) == "b.png"
    assert extract_media(shapes("saliency"), reply) == "b.png"
    assert extract_media(shapes("boxes"), reply) == [[1, 2, 3, 4]]
    assert extract_media(shapes("text"), reply) == "A sketch: and [[1, 2, 3, 4]]"
    assert type(extract_media(shapes("text"), reply)) is str
    assert extract_media(shapes("image"), InterleavedText(("no file", picture(None)))) == "no file"


def test_lists_of_points_and_notes_are_taken_as_they_are():
    assert extract_media(shapes("points"), "[[0, 0, 1]]") == [[0, 0, 1]]
    assert extract_media(shapes("notes"), "[[0.0, 0.5, 60]]") == [[0.0, 0.5, 60]]


@given(st.sampled_from(FORMS), REPLIES)
def test_no_reply_raises_and_every_prediction_is_json(form, reply):
    found = extract_media(shapes(form), reply)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@for_each("form", ["text", "number", "boxes", "tube", "masks", "instances", "image"])
@for_each("piece", ["[[1,2,3,4],", "[1,[2,3,4,5]],", '{"bbox":[1,2,3,4]},', "1,111", "<", "[0,[[1,2,3,4,5,6]]],"])
def test_long_replies_take_no_more_than_seconds(form, piece):
    start = time.process_time()
    extract_media(shapes(form), "[" + piece * (MEGABYTE // len(piece)))
    assert time.process_time() - start < 20
