from __future__ import annotations

from typing import Any

import pytest

from lmms_eval.errors import TaskError
from lmms_eval.tasks.megabench.settings import Settings
from tests.cases import for_each


def test_settings_of_a_mapping() -> None:
    settings = Settings.of({"interleave": True, "max_images": 6, "qwen": {"max_images": 2}})
    assert settings.interleave and settings == Settings(interleave=True, max_images=6)
    plain = Settings()
    assert Settings.of(None) == plain
    assert (plain.max_images, plain.demo_video_frames, plain.max_side) == (64, 8, None)
    access = Settings(data_folder="demo", max_video_subsample_frame=8).media
    assert (access.root.name, access.root.parent.name, access.max_frames) == ("demo", "megabench", 8)


@for_each(
    ("given", "words"),
    [
        ({"interleav": True}, "MEGA-Bench has no task option 'interleav'; there is: max_video_subsample_frame, inter"),
        ({"interleave": "yes"}, "interleave must be true or false"),
        ({"max_video_subsample_frame": 0}, "max_video_subsample_frame must be a whole number from 1 on"),
        ({"max_images": "many"}, "max_images must be"),
        ({"demo_video_frames": True}, "demo_video_frames must be"),
        ({"max_side": 0.5}, "max_side must be"),
    ],
)
def test_what_does_not_fit(given: dict[str, Any], words: str) -> None:
    with pytest.raises(TaskError, match=words):
        Settings.of(given)
