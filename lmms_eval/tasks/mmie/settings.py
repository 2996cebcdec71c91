"""The options of MMIE's tasks: ``lmms_eval_specific_kwargs``, or ``--task_kwargs`` on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from lmms_eval.tasks._task_utils.task_options import FLAG, BenchmarkOptions, Rule, at_least, one_of
from lmms_eval.tasks.mmie.view import MAX_IMAGES, MODES, Mode, ViewOptions


class Settings(BenchmarkOptions, frozen=True, kw_only=True):
    """The options of a task."""

    benchmark: ClassVar[str] = "MMIE"
    rules: ClassVar[Mapping[str, Rule]] = {
        "view": one_of(*MODES),
        "max_images": at_least(1),
        "strict_images": FLAG,
        "category_by": one_of("id", "name"),
        "ask_pictures": ("true, false or a text", lambda value: isinstance(value, bool | str)),
    }

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
