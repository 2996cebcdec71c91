"""Frames and pictures of requests, with limits of the request in place of the back end's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.api.generation import RequestLimits
from lmms_eval.api.messages import ChatVideoContent
from lmms_eval.errors import MediaError
from lmms_eval.media.encode import WireOptions
from lmms_eval.media.image import Bounds
from lmms_eval.models.argument_names import limits_as_arguments
from lmms_eval.models.remote.media import Frames, SentForm, read_video
from tests.cases import for_each
from tests.media.draw import write_video

FPS, FRAMES = 4, 24
OWN = Frames(3)


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> ChatVideoContent:
    return ChatVideoContent(url=str(write_video(tmp_path_factory.mktemp("film") / "film.mp4", FRAMES, FPS)))


@for_each(
    ("limits", "indices"),
    [
        (RequestLimits(), (0, 11, 23)),
        (RequestLimits(max_frames=2), (0, 23)),
        (RequestLimits(fps=0.5, max_frames=9), (0, 11, 23)),
        (RequestLimits(fps=1, frame_rule="by-rate"), (0, 4, 8, 12, 16, 20)),
        (RequestLimits(max_frames=3, frame_rule="inner"), (6, 12, 18)),
        (RequestLimits(max_frames=2, frame_rule="middle"), (5, 17)),
        (RequestLimits(fps=0.5, min_frames=4, max_frames=9, frame_rule="qwen-vl-utils"), (0, 8, 15, 23)),
    ],
)
def test_frames_follow_the_limits(limits: RequestLimits, indices: tuple[int, ...], film: ChatVideoContent) -> None:
    found = read_video(film, OWN.limited(limits)).indices
    assert len(found) == len(indices)
    assert all(abs(one - other) <= 1 for one, other in zip(found, indices, strict=True)), found


def test_a_rule_without_its_number_or_a_video_that_is_too_short_fails_the_document(
    film: ChatVideoContent, tmp_path: Path
) -> None:
    with pytest.raises(MediaError, match="by rate need"):
        read_video(film, OWN.limited(RequestLimits(frame_rule="by-rate")))
    short = ChatVideoContent(url=str(write_video(tmp_path / "short.mp4", 1, FPS)))
    with pytest.raises(MediaError, match="two frames or more"):
        read_video(short, OWN.limited(RequestLimits(frame_rule="qwen-vl-utils")))
    with pytest.raises(MediaError, match="too short for a frame"):
        read_video(short, OWN.limited(RequestLimits(fps=1, frame_rule="by-rate")))


def test_pixels_of_frames(film: ChatVideoContent) -> None:
    plain = OWN.limited(RequestLimits(total_pixels=3 * 1000))
    assert [image.width * image.height <= 1000 for image in plain.pictures(read_video(film, plain))] == [True] * 3
    limits = RequestLimits(fps=2, min_frames=4, max_frames=12, min_pixels=100, total_pixels=12 * 500,
                           frame_rule="qwen-vl-utils")  # fmt: skip
    ruled = OWN.limited(limits)
    (size,) = {image.size for image in ruled.pictures(read_video(film, ruled))}
    assert 700 < size[0] * size[1] <= 1000  # pairs of frames count once


def test_pictures_follow_the_limits() -> None:
    form = SentForm(OWN, WireOptions(bounds=Bounds(max_pixels=50, max_side=9)))
    limited = form.limited(RequestLimits(min_pixels=4, max_pixels=400))
    assert limited.images.bounds == Bounds(400, 9, 4)
    assert form.limited(RequestLimits(max_frames=7)).frames.count == 7


def test_limits_have_the_names_of_arguments() -> None:
    limits = RequestLimits(max_frames=7, fps=2, max_pixels=9)
    assert limits_as_arguments(limits, most_frames="max_frames_num", rate="video_fps") == {
        "max_frames_num": 7, "video_fps": 2, "max_pixels": 9,
    }  # fmt: skip
