"""Options of the MEGA-Bench tasks: ``lmms_eval_specific_kwargs``, or ``--task_kwargs`` on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import ClassVar

from msgspec import Struct

from lmms_eval.errors import MediaError
from lmms_eval.tasks._task_utils.task_options import FLAG, BenchmarkOptions, Rule, at_least
from lmms_eval.tasks.megabench import data
from lmms_eval.tasks.megabench.metrics.values import OutsideData

MAX_FRAMES = 64
"""Frames of a video in a mixed row, unless the task says otherwise (``max_video_subsample_frame``)."""


class MediaAccess(Struct, frozen=True):
    """The folder of the media, and the most frames of a video."""

    root: Path
    """Folder that holds ``data/``."""
    max_frames: int = MAX_FRAMES

    def path(self, name: str) -> Path:
        """Absolute path of a file that the data set calls ``./data/...``.

        Raises ``MediaError`` if it leads out of the folder.
        """
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise MediaError(f"a row names the file {name!r}, which is outside of the data set's folder {self.root}")
        return (self.root / path).absolute()


class Settings(BenchmarkOptions, frozen=True, kw_only=True):
    """The options of a task."""

    benchmark: ClassVar[str] = "MEGA-Bench"
    rules: ClassVar[Mapping[str, Rule]] = {
        **dict.fromkeys(("max_video_subsample_frame", "max_images", "demo_video_frames", "max_side"), at_least(1)),
        "interleave": FLAG,
    }

    max_video_subsample_frame: int = MAX_FRAMES
    """Frames of a video in the rows that mix pictures and videos."""
    interleave: bool = False
    """Whether media are at their places in the text, as the authors send them; otherwise they come before the text."""
    max_images: int = 64
    """Most pictures of a call with ``interleave``. The defaults are the authors' settings for GPT-4o."""
    demo_video_frames: int = 8
    """Frames of all videos of the demonstration together; also the most pictures that it may have."""
    max_side: int | None = None
    """Pictures and frames are shrunk until the longer side is at most this many pixels (the authors: 1000)."""
    geocode_table: str = ""
    geocoder: str = ""
    nltk_data: str | None = None
    """Options of the run (``--geocode_table``, ``--geocoder``, ``--nltk_data``)."""

    @property
    def outside_data(self) -> OutsideData:
        return OutsideData(self.geocode_table, self.geocoder, self.nltk_data)

    @property
    def media(self) -> MediaAccess:
        """Return access to the media. Raises ``DataError`` if they were not found."""
        return MediaAccess(self.folder or data.media_root(self.data_root), self.max_video_subsample_frame)
