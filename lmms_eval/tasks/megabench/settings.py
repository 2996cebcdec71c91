"""Options of the MEGA-Bench tasks: ``lmms_eval_specific_kwargs``, or ``--task_kwargs`` on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from lmms_eval.tasks._task_utils.task_options import FLAG, BenchmarkOptions, Rule, at_least
from lmms_eval.tasks.megabench import data
from lmms_eval.tasks.megabench.interleave import PictureBudget
from lmms_eval.tasks.megabench.metrics.values import OutsideData
from lmms_eval.tasks.megabench.prompts import MAX_FRAMES, MediaAccess

_BUDGET = PictureBudget()


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
    max_images: int = _BUDGET.max_images
    demo_video_frames: int = _BUDGET.demo_video_frames
    max_side: int | None = _BUDGET.max_side
    """The budget of ``interleave``."""
    geocode_table: str = ""
    geocoder: str = ""
    nltk_data: str | None = None
    """Options of the run (``--geocode_table``, ``--geocoder``, ``--nltk_data``)."""

    @property
    def outside_data(self) -> OutsideData:
        return OutsideData(self.geocode_table, self.geocoder, self.nltk_data)

    @property
    def media(self) -> MediaAccess:
        """Return access to the media.

        Raises:
            DataError: they were not found.
        """
        return MediaAccess(self.folder or data.media_root(self.data_root), self.max_video_subsample_frame)

    @property
    def budget(self) -> PictureBudget:
        return PictureBudget(self.max_images, self.demo_video_frames, self.max_side)
