import numpy as np
import pytest

from lmms_eval.api.messages import ChatMessages
from lmms_eval.errors import MediaError
from lmms_eval.tasks.general_bench.items import MediaInput
from lmms_eval.tasks.general_bench.prompts.media import Question, question
from lmms_eval.tasks.general_bench.prompts.questions import message_parts
from tests.cases import for_each
from tests.tasks.general_bench.prompts.media_kit import a_picture, a_video, an_item, frames


def kinds(parts):
    ChatMessages(messages=[{"role": "user", "content": parts}])
    return [part["type"] for part in parts]


def reds(parts):
    from lmms_eval.media import load_rgb

    return [load_rgb(part["url"]).getpixel((5, 5))[0] for part in parts if part["type"] == "image"]


def test_pictures_and_text(tmp_path):
    media = MediaInput("image", (a_picture(tmp_path / "a.png"), a_picture(tmp_path / "b.png")))
    parts = message_parts(Question((media, "What?"), 8))
    assert kinds(parts) == ["image", "image", "text"]
    assert parts[0]["url"] == str(tmp_path / "a.png")


def test_frames_are_pictures_in_natural_order(tmp_path):
    parts = message_parts(Question((frames(tmp_path / "f", 12), "What?"), 8))
    assert kinds(parts) == ["image"] * 12 + ["text"]
    assert reds(parts) == list(range(12))


def test_at_most_so_many_frames_are_shown_evenly_rounded_down(tmp_path):
    media = frames(tmp_path / "f", 12)
    assert reds(message_parts(Question((media,), 8, max_frames=4))) == [0, 3, 7, 11]
    assert reds(message_parts(Question((media,), 8, max_frames=1))) == [0]


def test_listed_frames_keep_their_order(tmp_path):
    frames(tmp_path / "f", 3)
    media = MediaInput("frames", tuple(tmp_path / "f" / f"{number}.png" for number in (2, 0, 1)))
    assert reds(message_parts(Question((media,), 8))) == [2, 0, 1]


def test_frames_of_answers_by_frame_carry_their_numbers(tmp_path):
    item = an_item("Ball Tracking", "tube", "The ball.", (frames(tmp_path / "f", 9),))
    parts = message_parts(question(item, max_frames=3))
    assert [part["text"] for part in parts if part["type"] == "text"][:3] == ["Frame 0:", "Frame 4:", "Frame 8:"]
    assert reds(parts) == [0, 4, 8]


def test_a_video_file_goes_to_the_model_unless_its_frames_are_numbered(tmp_path):
    media = a_video(tmp_path / "v.mp4", 9)
    parts = message_parts(Question((media, "What?"), 8))
    assert parts[0] == {"type": "video", "url": str(tmp_path / "v.mp4")}
    parts = message_parts(Question((media, "What?"), 8, max_frames=3, numbers_frames=True))
    assert kinds(parts) == ["text", "image"] * 3 + ["text"]
    assert reds(parts) == pytest.approx([0, 16, 32], abs=6)


def test_a_folder_in_the_place_of_a_video_is_its_frames(tmp_path):
    frames(tmp_path / "f", 2)
    assert kinds(message_parts(Question((MediaInput("video", (tmp_path / "f",)),), 8))) == ["image", "image"]


def test_sound(tmp_path):
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    media = MediaInput("audio", (tmp_path / "a.wav",))
    assert message_parts(Question((media,), 8)) == [{"type": "audio", "url": str(tmp_path / "a.wav")}]


@for_each("kind", ["image", "audio", "video", "points"])
def test_what_is_missing_is_an_error(tmp_path, kind):
    with pytest.raises(MediaError, match="gone"):
        message_parts(Question((MediaInput(kind, (tmp_path / "gone.npy",)),), 8))


def test_a_folder_without_frames_is_an_error(tmp_path):
    with pytest.raises(MediaError):
        message_parts(Question((MediaInput("frames", (tmp_path,)),), 8))


def test_points_are_shown_from_four_sides_or_refused(tmp_path):
    np.save(tmp_path / "p.npy", np.random.default_rng(0).normal(size=(50, 3)))
    media = MediaInput("points", (tmp_path / "p.npy",))
    assert kinds(message_parts(Question((media, "What?"), 8))) == ["text", *["image"] * 4, "text"]
    with pytest.raises(MediaError, match="points=render"):
        message_parts(Question((media,), 8), points="refuse")


def test_a_file_that_is_no_cloud_is_an_error(tmp_path):
    (tmp_path / "p.npy").write_bytes(b"no numbers")
    with pytest.raises(MediaError, match=r"p\.npy"):
        message_parts(Question((MediaInput("points", (tmp_path / "p.npy",)),), 8))
