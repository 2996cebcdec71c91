"""The options of MMIE's tasks: ``lmms_eval_specific_kwargs``, or ``--task_kwargs`` on the command line."""

from __future__ import annotations

from typing import ClassVar, Literal

from lmms_eval.tasks._task_utils.task_options import BenchmarkOptions, wrong_option
from lmms_eval.tasks.mmie.view import MAX_IMAGES, MODES, Mode, ViewOptions

_NAME = "MMIE"


class Settings(BenchmarkOptions, frozen=True, kw_only=True):
    """The options of a task."""

    benchmark: ClassVar[str] = _NAME

    view: Mode = "official"
    """What the judge sees of an answer: up to the third picture as in the benchmark, or all texts."""
    max_images: int = MAX_IMAGES
    """Most pictures of a sample. With more, it is skipped (``official``) or the surplus left out (``full_text``)."""
    strict_images: bool = False
    """Whether a missing picture fails its sample. Otherwise it is left out and counted."""
    category_by: Literal["id", "name"] = "id"
    """The field that decides if a record's id and its category disagree."""
    ask_pictures: bool | str = False
    """Whether to ask for described pictures (``<image>description</image>``). A text replaces our wording."""
    pre_prompt: str = ""
    post_prompt: str = ""
    """Texts around the question (lmms-eval's options)."""
    judge_prompts: str = ""
    """File with the texts of the benchmark's own judge prompts, in place of ours (``--judge_prompts``)."""
    human_scores: str = ""
    """File with human scores of some of the answers (``--human_scores``)."""
    media_root: str = ""
    """Further folder with the pictures (``--media_root``)."""
    allow_media: str = ""
    """Comma-separated list of media outside the data set's folder that records may name (``--allow_media``)."""

    @property
    def view_options(self) -> ViewOptions:
        return ViewOptions(self.view, self.max_images)

    def check(self) -> None:
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
