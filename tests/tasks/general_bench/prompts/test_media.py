import pytest

from lmms_eval.errors import MediaError
from lmms_eval.tasks.general_bench.facts import tasks
from lmms_eval.tasks.general_bench.items import MediaInput
from lmms_eval.tasks.general_bench.prompts.forms import max_new_tokens as form_tokens
from lmms_eval.tasks.general_bench.prompts.media import frame_count, picture_size, question
from tests.cases import for_each
from tests.tasks.general_bench.prompts.media_kit import a_picture, a_video, an_item, frames


def text_of(asked):
    assert isinstance(asked.parts[-1], str)
    return asked.parts[-1]


def test_media_stand_first_and_the_prompt_before_the_demand(tmp_path):
    media = (MediaInput("audio", (tmp_path / "a.wav",)), MediaInput("audio", (tmp_path / "b.wav",)))
    asked = question(an_item("Speech Command", prompt="Which word?", media=media), ("go", "stop"))
    assert asked.parts[:2] == media
    assert text_of(asked) == "Which word?\nAnswer with exactly one of these, as written here: go, stop."
    assert asked.max_new_tokens == 64


def test_a_caption_is_asked_for_with_the_items_words_alone():
    asked = question(an_item("Wild Audio Captioning", prompt="Describe the sound."))
    assert asked.parts == ("Describe the sound.",)
    assert asked.max_new_tokens == 256


def test_an_item_without_a_prompt_names_its_task():
    assert "Task: ATM Booths Suspicious Behavior Recognition." in text_of(
        question(an_item("ATM Booths Suspicious Behavior  Recognition"))
    )
    name = next(task.name for task in tasks() if task.name.startswith("Image Editing with Multi-image Prompt"))
    assert question(an_item(name, "image")).parts == ("Task: Image Editing with Multi-image Prompt.",)


def test_marks_of_media_are_dropped():
    asked = question(an_item("Humor Video Captioning", prompt="<video>\nWhat is <b>funny</b>? <image>"))
    assert asked.parts == ("What is <b>funny</b>?",)


def test_boxes_are_asked_for_in_pixels_of_the_picture(tmp_path):
    media = (MediaInput("image", (a_picture(tmp_path / "a.png", (640, 360)),)),)
    item = an_item("Bee Detection", "boxes", "Find the bees.", media, [[0, 0, 1, 1, "bee"]])
    text = text_of(question(item, ("bee", "queen")))
    assert '[x, y, width, height, "label"]' in text
    assert "640x360" in text
    assert "bee, queen" in text
    grounding = an_item("Short Expression Visual Grounding", "boxes", "The left cup.", media, [[0, 0, 1, 1]])
    assert "label" not in text_of(question(grounding))


def test_a_picture_that_is_not_there_is_an_error(tmp_path):
    item = an_item("Bee Detection", "boxes", "?", (MediaInput("image", (tmp_path / "none.png",)),))
    with pytest.raises(MediaError, match="none"):
        question(item)


def test_a_short_tube_has_an_entry_for_each_frame(tmp_path):
    item = an_item("Ball Tracking", "tube", "The ball.", (frames(tmp_path / "f", 5, (80, 40)),))
    asked = question(item)
    assert "each of the 5 frames" in text_of(asked)
    assert "80x40" in text_of(asked)
    assert asked.numbers_frames
    assert asked.max_new_tokens == form_tokens("tube")


def test_of_a_long_tube_the_shown_frames_are_asked_for_by_number(tmp_path):
    item = an_item("Ball Tracking", "tube", "The ball.", (frames(tmp_path / "f", 9),))
    text = text_of(question(item, max_frames=4))
    assert "some frames of 9" in text
    assert "[number, [x, y, width, height]]" in text


def test_masks_of_videos_are_polygons_by_frame(tmp_path):
    item = an_item("Human Video Object Segmentation", "masks", "Outline.", (a_video(tmp_path / "v.mp4", 3),))
    text = text_of(question(item))
    assert "each of the 3 frames" in text
    assert "64x48" in text
    assert "[polygon, ...]" in text


def test_frames_are_counted(tmp_path):
    folder, video = frames(tmp_path / "f", 3), a_video(tmp_path / "v.mp4", 6)
    assert frame_count(an_item("Ball Tracking", media=(folder,))) == 3
    assert frame_count(an_item("Ball Tracking", media=(video,))) == 6
    assert frame_count(an_item("Ball Tracking", media=(video,), raw={"frame_count": 8})) == 8
    assert frame_count(an_item("Ball Tracking", media=(video,), raw={"frame_count": True})) == 6
    assert frame_count(an_item("Ball Tracking")) is None
    assert picture_size(an_item("Ball Tracking", media=(video,))) == (64, 48)
    assert picture_size(an_item("Ball Tracking", media=(folder,))) == (64, 48)
    assert picture_size(an_item("Ball Tracking")) is None
    as_video = MediaInput("video", folder.paths)
    assert frame_count(an_item("Ball Tracking", media=(as_video,))) == 3
    assert picture_size(an_item("Ball Tracking", media=(as_video,))) == (64, 48)


@for_each(
    ("task", "form", "wanted"),
    [
        ("Crowd Counting", "number", "digits only"),
        ("Bottle Anomaly Detection", "number", "from 0 to 1"),
        ("Lung segmentation", "mask", "polygons"),
        ("Vehicle Instance Segmentation", "instances", '"mask"'),
        ("Person Keypoint Detection", "instances", '"keypoints"'),
        ("lmage Scene Graph Parsing", "triplets", '["subject", "predicate", "object"]'),
    ],
)
def test_demands_by_form(task, form, wanted):
    assert wanted in text_of(question(an_item(task, form, "Go.")))


def test_forms_of_files_are_asked_for_with_the_prompt_alone():
    for form in ("image", "video", "audio", "depth", "points"):
        assert question(an_item("Image Deraining", form, "Remove the rain.")).parts == ("Remove the rain.",)


def test_a_question_about_no_frame_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        question(an_item("Ball Tracking"), max_frames=0)


def test_a_picture_without_objects_is_asked_about_as_the_others_are(tmp_path):
    media = (MediaInput("image", (a_picture(tmp_path / "a.png", (64, 48)),)),)
    asked = [
        question(an_item("Bee Detection", "boxes", "Find the bees.", media, reference), ("bee", "queen"))
        for reference in ([[0, 0, 1, 1, "bee"]], [])
    ]
    assert asked[0] == asked[1]
