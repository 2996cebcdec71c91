"""What a task of MMIE can be told: ``lmms_eval_specific_kwargs``, or ``--task_kwargs`` on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lmms_eval.tasks._task_utils.task_options import read_options, wrong_option
from lmms_eval.tasks.mmie.view import MAX_IMAGES, MODES, Mode, ViewOptions

_NAME = "MMIE"


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of a task."""

    view: Mode = "official"
    """What the judge sees of an answer: cut after the third picture as the benchmark does, or all texts."""
    max_images: int = MAX_IMAGES
    """Samples with more pictures are skipped (``official``); pictures beyond are left out (``full_text``)."""
    strict_images: bool = False
    """A picture that is not there fails its sample; else it is left out and counted."""
    category_by: Literal["id", "name"] = "id"
    """What decides where a record's id and its category disagree."""
    ask_pictures: bool | str = False
    """Ask for described pictures (``<image>description</image>``); a text in place of our own wording."""
    pre_prompt: str = ""
    post_prompt: str = ""
    """Around the question (lmms-eval's options)."""
    data_root: str | None = None
    """The run's local data (``--data_root``)."""
    data_folder: str | None = None
    """A folder of data beside this module, which beats ``data_root``."""

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> Settings:
        """The settings in a mapping; mappings in it (settings of other models) are passed over.

        Raises:
            TaskError: an unknown name or a value that does not fit.
        """
        settings = read_options(cls, given, _NAME)
        settings._check()
        return settings

    @property
    def folder(self) -> Path | None:
        """``data_folder`` as a path."""
        return None if self.data_folder is None else Path(__file__).parent / self.data_folder

    @property
    def view_options(self) -> ViewOptions:
        return ViewOptions(self.view, self.max_images)

    def _check(self) -> None:
        if self.view not in MODES:
            raise wrong_option(_NAME, "view", " or ".join(MODES), self.view)
        if not isinstance(self.max_images, int) or isinstance(self.max_images, bool) or self.max_images < 1:
            raise wrong_option(_NAME, "max_images", "a whole number from 1 on", self.max_images)
        if not isinstance(self.strict_images, bool):
            raise wrong_option(_NAME, "strict_images", "true or false", self.strict_images)
        if self.category_by not in ("id", "name"):
            raise wrong_option(_NAME, "category_by", "id or name", self.category_by)
        if not isinstance(self.ask_pictures, bool | str):
            raise wrong_option(_NAME, "ask_pictures", "true, false or a text", self.ask_pictures)
