from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lmms_eval.compat.media import load_video_decord, read_video, read_video_pyav
from lmms_eval.errors import MediaError
from lmms_eval.media import uniform_indices
from tests.media.draw import HEIGHT, WIDTH, number_of, write_video


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_video(tmp_path_factory.mktemp("video") / "clip.mp4", 60, fps=20)


def numbers(frames: np.ndarray) -> list[int]:
    assert frames.dtype == np.uint8 and frames.shape[1:] == (HEIGHT, WIDTH, 3)
    return [number_of(frame) for frame in frames]


def test_the_three_names_read_the_same(clip: Path) -> None:
    wanted = uniform_indices(60, 6)
    assert numbers(read_video(str(clip), 6)) == wanted
    assert numbers(read_video_pyav(str(clip), num_frm=6)) == wanted
    assert numbers(load_video_decord(str(clip), 6)) == wanted
    assert numbers(load_video_decord([str(clip)], 6)) == wanted


def test_rate_and_last_frame(clip: Path) -> None:
    assert numbers(read_video(clip, 32, fps=1.0)) == uniform_indices(60, 3)
    assert numbers(read_video_pyav(clip, num_frm=1, force_include_last_frame=True)) == [59]


def test_the_caller_owns_the_array(clip: Path) -> None:
    frames = read_video(clip, 2)
    frames[:] = 0
    assert numbers(read_video(clip, 2)) == [0, 59]


def test_errors(clip: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="bgr24"):
        read_video(clip, format="bgr24")
    with pytest.raises(MediaError, match=r"gone\.mp4"):
        read_video(tmp_path / "gone.mp4")


@pytest.mark.parametrize("backend", ["pyav", "torchcodec", "dali"])
def test_every_backend_chooses_the_same_frames(clip: Path, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert numbers(read_video(clip, 6, backend=backend)) == uniform_indices(60, 6)
    monkeypatch.setenv("LMMS_VIDEO_DECODE_BACKEND", backend)
    assert numbers(read_video(clip, 6)) == uniform_indices(60, 6)


def test_unknown_backends_are_refused(clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="opencv"):
        read_video(clip, backend="opencv")
    monkeypatch.setenv("LMMS_VIDEO_DECODE_BACKEND", "vhs")
    with pytest.raises(ValueError, match="vhs"):
        read_video(clip)
