"""Options of the MEGA-Bench tasks: ``lmms_eval_specific_kwargs``, or ``--task_kwargs`` on the command line."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from lmms_eval.tasks._task_utils.task_options import BenchmarkOptions, wrong_option
from lmms_eval.tasks.megabench import data
from lmms_eval.tasks.megabench.interleave import PictureBudget
from lmms_eval.tasks.megabench.outside_data import OutsideData
from lmms_eval.tasks.megabench.prompts import MAX_FRAMES, MediaAccess

_BUDGET = PictureBudget()
_NUMBERS = ("max_video_subsample_frame", "max_images", "demo_video_frames", "max_side")


class Settings(BenchmarkOptions, frozen=True, kw_only=True):
    """The options of a task."""

    benchmark: ClassVar[str] = "MEGA-Bench"

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

    @cached_property
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

    def check(self) -> None:
        for name in _NUMBERS:
            value = getattr(self, name)
            if name == "max_side" and value is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise wrong_option(self.benchmark, name, "a whole number from 1 on", value)
        if not isinstance(self.interleave, bool):
            raise wrong_option(self.benchmark, "interleave", "true or false", self.interleave)
