from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lmms_eval.errors import DataError, MediaError
from lmms_eval.tasks.general_bench.readers import pictures as frames_module
from lmms_eval.tasks.general_bench.readers.pictures import files_of, natural_key, read_frames, read_grey
from tests.cases import for_each
from tests.media.draw import number_of, write_video
from tests.media.test_damage import damage, damaged
from tests.tasks.general_bench.readers.pixel_files import noise, write_frames, write_lossless, write_picture


def test_frames_of_a_folder_come_in_natural_order(tmp_path):
    frames = noise(1, 12, 3, 4, 3)
    write_frames(tmp_path / "video", frames)
    (tmp_path / "video" / "notes.txt").write_text("no frame")
    (tmp_path / "video" / ".hidden.png").write_text("no frame")
    assert np.array_equal(np.stack(list(read_frames(tmp_path / "video"))), frames)


def test_frames_of_a_lossless_video_are_those_that_were_written(tmp_path):
    frames = noise(2, 5, 16, 24, 3)
    path = write_lossless(tmp_path / "a.avi", frames)
    assert np.array_equal(np.stack(list(read_frames(path))), frames)


def test_frames_of_a_video_come_in_order_of_time(tmp_path):
    path = write_video(tmp_path / "a.mp4", 30)
    assert [number_of(frame) for frame in read_frames(path)] == list(range(30))


def test_pictures_can_be_read_in_another_way(tmp_path):
    write_frames(tmp_path / "video", noise(1, 2, 3, 4, 3))
    assert [frame.shape for frame in read_frames(tmp_path / "video", read_grey)] == [(3, 4), (3, 4)]


def test_frames_are_read_when_they_are_asked_for(tmp_path):
    write_frames(tmp_path / "video", noise(1, 2, 3, 4, 3))
    (tmp_path / "video" / "2.png").write_text("damaged")
    frames = read_frames(tmp_path / "video")
    assert [next(frames).shape, next(frames).shape] == [(3, 4, 3)] * 2
    with pytest.raises(MediaError, match=r"2\.png"):
        next(frames)


@given(numbers=st.lists(st.integers(0, 10**30), unique=True, max_size=8), prefix=st.text("ab_", max_size=3))
def test_natural_order_is_that_of_the_numbers(numbers, prefix):
    names = [f"{prefix}{number}.png" for number in numbers]
    assert sorted(names, key=natural_key) == [f"{prefix}{number}.png" for number in sorted(numbers)]


@given(names=st.lists(st.text("0123٣a-", max_size=6)))
def test_any_names_have_an_order(names):
    assert sorted(sorted(names, key=natural_key)) == sorted(names)


def test_a_folder_without_pictures_or_with_too_many_is_refused(tmp_path, monkeypatch):
    with pytest.raises(MediaError, match="no file of the kinds"):
        read_frames(tmp_path)
    monkeypatch.setattr(frames_module, "MAX_FRAMES", 2)
    for number in range(3):
        write_picture(tmp_path / f"{number}.png", noise(1, 2, 2))
    with pytest.raises(MediaError, match="more than 2 files"):
        files_of(tmp_path, (".png",))


def test_a_video_with_too_many_frames_is_stopped(tmp_path, monkeypatch):
    path = write_lossless(tmp_path / "a.avi", noise(2, 5, 16, 24, 3))
    monkeypatch.setattr(frames_module, "MAX_FRAMES", 4)
    with pytest.raises(MediaError, match="more than 4 frames"):
        list(read_frames(path))


def test_a_video_with_giant_frames_is_refused(tmp_path, monkeypatch):
    path = write_lossless(tmp_path / "a.avi", noise(2, 2, 16, 24, 3))
    monkeypatch.setattr("lmms_eval.tasks.general_bench.readers.pictures.MAX_PIXELS", 16 * 24 - 1)
    with pytest.raises(MediaError, match="24x16 pixels"):
        next(read_frames(path))


def test_a_video_without_frames_is_refused(tmp_path):
    import av

    with av.open(str(tmp_path / "a.avi"), "w") as container:
        stream = container.add_stream("mpeg4", rate=8)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        container.start_encoding()
    with pytest.raises(MediaError, match="no readable frame"):
        next(read_frames(tmp_path / "a.avi"))


def test_a_sound_is_no_video(tmp_path):
    from lmms_eval.media.audio import encode_wav
    from tests.media.draw import tone

    (tmp_path / "a.wav").write_bytes(encode_wav(tone(), 8000))
    with pytest.raises(MediaError, match="no video stream"):
        next(read_frames(tmp_path / "a.wav"))


@for_each("content", [b"", b"text", b"\0" * 4096, b"RIFF\xff\xff\xff\xffAVI LIST"])
def test_what_is_no_video_is_refused(tmp_path, content):
    (tmp_path / "a.mp4").write_bytes(content)
    with pytest.raises((DataError, MediaError)):
        next(read_frames(tmp_path / "a.mp4"))


@for_each("playlist", ["ffconcat version 1.0\nfile a.avi\n", "#EXTM3U\n#EXTINF:1,\na.avi\n#EXT-X-ENDLIST\n"])
def test_playlists_do_not_open_other_files(tmp_path, playlist):
    write_lossless(tmp_path / "a.avi", noise(1, 2, 16, 24, 3))
    (tmp_path / "b.mp4").write_text(playlist)
    with pytest.raises(MediaError, match="no readable video"):
        next(read_frames(tmp_path / "b.mp4"))


def test_all_frames_together_are_bounded(tmp_path, monkeypatch):
    frames = noise(1, 3, 16, 24, 3)
    monkeypatch.setattr(frames_module, "MAX_VIDEO_PIXELS", 2 * 16 * 24)
    for path in (write_lossless(tmp_path / "a.avi", frames), write_frames(tmp_path / "b", frames)):
        with pytest.raises(MediaError, match="more than 768 pixels"):
            list(read_frames(path))


def test_a_film_with_sound_only_is_refused(tmp_path):
    import av

    with av.open(str(tmp_path / "a.mp4"), "w") as container:
        stream = container.add_stream("aac", rate=8000)
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        sound.rate = 8000
        container.mux(stream.encode(sound))
        container.mux(stream.encode())
    with pytest.raises(MediaError, match="no video stream"):
        next(read_frames(tmp_path / "a.mp4"))


def test_a_device_is_not_opened():
    with pytest.raises(DataError, match="no file"):
        next(read_frames(Path("/dev/zero")))


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return write_video(tmp_path_factory.mktemp("video") / "clip.mp4", 12).read_bytes()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(hits=damage, cut=st.sampled_from([1.0, 1.0, 0.9, 0.5]))
def test_damage_ends_in_frames_or_in_our_errors(tmp_path, clip, hits, cut):
    path = tmp_path / "a.mp4"
    path.write_bytes(damaged(clip, hits, cut))
    try:
        assert all(frame.ndim == 3 for frame in read_frames(path))
    except (DataError, MediaError):
        return
