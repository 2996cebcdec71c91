import pytest

from lmms_eval.errors import MediaError
from lmms_eval.tasks.general_bench.items import MediaInput
from lmms_eval.tasks.general_bench.prompts.media import frame_files, in_frames, shown
from tests.tasks.general_bench.prompts.media_kit import a_picture, frames


def test_the_pictures_of_a_folder_in_natural_order(tmp_path):
    folder = frames(tmp_path / "f", 11)
    (tmp_path / "f" / "notes.txt").write_text("no frame")
    assert [path.stem for path in frame_files(folder)] == list(map(str, range(11)))


def test_listed_frames_stay(tmp_path):
    paths = tuple(tmp_path / name for name in ("b.png", "a.png"))
    assert frame_files(MediaInput("frames", paths)) == paths
    alone = (a_picture(tmp_path / "a.png"),)
    assert frame_files(MediaInput("frames", alone)) == alone


def test_a_folder_without_frames(tmp_path):
    with pytest.raises(MediaError, match="no file of the kinds"):
        frame_files(MediaInput("frames", (tmp_path,)))


def test_a_folder_is_frames_whatever_it_is_called(tmp_path):
    assert in_frames(MediaInput("video", (tmp_path,)))
    assert in_frames(MediaInput("frames", (tmp_path / "a.png",)))
    assert not in_frames(MediaInput("video", (tmp_path / "a.mp4",)))


def test_shown_frames_are_even_and_rounded_down():
    assert shown(5, 64) == [0, 1, 2, 3, 4]
    assert shown(12, 4) == [0, 3, 7, 11]
    assert shown(100, 64)[-1] == 99
    assert len(shown(100, 64)) == 64
    assert shown(0, 4) == []
