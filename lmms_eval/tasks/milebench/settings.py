"""Options of the MileBench tasks: ``lmms_eval_specific_kwargs``, or ``--task_kwargs`` on the command line."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from lmms_eval.errors import TaskError
from lmms_eval.tasks._task_utils.task_options import BenchmarkOptions, wrong_option

BENCHMARK = "MileBench"
PROMPT_MODES = ("official", "index")


class Settings(BenchmarkOptions, frozen=True, kw_only=True):
    """The options of a task."""

    benchmark: ClassVar[str] = BENCHMARK

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
        if self.prompt_mode not in PROMPT_MODES:
            raise wrong_option(BENCHMARK, "prompt_mode", "official or index", self.prompt_mode)
        if not isinstance(self.adversarial, bool):
            raise wrong_option(BENCHMARK, "adversarial", "true or false", self.adversarial)
        if not _whole(self.combine_image, 0):
            raise wrong_option(BENCHMARK, "combine_image", "a number of sheets, or 0 for none", self.combine_image)
        if not _whole(self.font_size, 1):
            raise wrong_option(BENCHMARK, "font_size", "a whole number from 1 on", self.font_size)
        budget = {"max_context_len": self.max_context_len, "n_tokens_per_image": self.n_tokens_per_image}
        for name, value in budget.items():
            if value is not None and not _whole(value, 0):
                raise wrong_option(BENCHMARK, name, "a whole number", value)
        given = [value is not None for value in (*budget.values(), self.tokenizer)]
        if any(given) and not all(given):
            raise TaskError(
                "MileBench: prompts are cut only with all three of max_context_len, n_tokens_per_image and tokenizer "
                "(characters, words, or a checkpoint); give all or none"
            )


def _whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
