"""Options of the MileBench tasks: ``lmms_eval_specific_kwargs``, or ``--task_kwargs`` on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from lmms_eval.errors import TaskError
from lmms_eval.tasks._task_utils.task_options import FLAG, BenchmarkOptions, Rule, at_least, one_of


class Settings(BenchmarkOptions, frozen=True, kw_only=True):
    """The options of a task."""

    benchmark: ClassVar[str] = "MileBench"
    rules: ClassVar[Mapping[str, Rule]] = {
        "prompt_mode": one_of("official", "index"),
        "adversarial": FLAG,
        "combine_image": at_least(0, "a number of sheets, or 0 for none"),
        "font_size": at_least(1),
        "max_context_len": at_least(0, "a whole number"),
        "n_tokens_per_image": at_least(0, "a whole number"),
    }

    prompt_mode: Literal["official", "index"] = "official"
    """Places of the pictures: by position, as in the authors' script, or by the placeholder's index."""
    combine_image: int = 0
    """Most sheets for the pictures of a sample; 0 keeps the pictures separate."""
    adversarial: bool = False
    """The variant with shuffled options and reworded references."""
    max_context_len: int | None = None
    """Tokens of text and pictures that a prompt may have; with it the next two must be given."""
    n_tokens_per_image: int | None = None
    tokenizer: str | None = None
    """``characters``, ``words``, or a checkpoint whose tokenizer counts."""
    font_size: int = 8
    """Font size of the captions of sheets, which are drawn at four times this size."""

    @property
    def variant(self) -> str:
        """Name of these data and prompts; empty for the benchmark's usual ones."""
        parts = [
            "demo" if self.data_folder is not None else "",
            "adversarial" if self.adversarial else "",
            f"combined_{self.combine_image}" if self.combine_image else "",
            "pictures_by_index" if self.prompt_mode == "index" else "",
        ]
        return "-".join(part for part in parts if part)

    def check(self) -> None:
        given = [value is not None for value in (self.max_context_len, self.n_tokens_per_image, self.tokenizer)]
        if any(given) and not all(given):
            raise TaskError(
                "MileBench: prompts are cut only with all three of max_context_len, n_tokens_per_image and tokenizer "
                "(characters, words, or a checkpoint); give all or none"
            )
