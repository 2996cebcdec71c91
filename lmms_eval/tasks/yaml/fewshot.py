"""Choice of the documents that stand as examples in front of a question."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lmms_eval.errors import TaskError
from lmms_eval.tasks.yaml.config import TaskConfig

SAMPLERS = ("default", "first_n")


@dataclass(frozen=True, slots=True)
class FewShot:
    """The choice of examples of one task; the same for a document on every start of a run."""

    count: int
    split: str
    same_split: bool
    """Examples come from the evaluated split: the document itself is never among them."""
    sampler: str
    seed: str

    def choose(self, doc_id: int, available: int) -> list[int]:
        """Numbers of the documents of ``split`` that stand in front of a document.

        Raises:
            TaskError: the split has too few documents.
        """
        needed = self.count + (1 if self.same_split else 0)
        if available < needed:
            raise TaskError(
                f"num_fewshot {self.count}: split {self.split!r} has only {available} documents"
                f"{', one of which is the question' if self.same_split else ''}; ask for fewer shots"
            )
        if self.sampler == "first_n":
            chosen = list(range(needed))
        else:
            chosen = random.Random(f"{self.seed}:{doc_id}").sample(range(available), needed)
        if self.same_split:
            chosen = [number for number in chosen if number != doc_id]
        return chosen[: self.count]


def few_shot(config: TaskConfig, count: int, seed: int | None, where: str) -> FewShot | None:
    """The choice that a task's configuration makes, or ``None`` without examples.

    Examples come from ``fewshot_split``, else the training, validation or evaluated split.
    """
    sampler = sampler_name(config.fewshot_config, where)
    if count == 0:
        return None
    split = config.fewshot_split or config.training_split or config.validation_split or config.split
    return FewShot(count, split, split == config.split, sampler, f"{seed}:{config.task}")


def sampler_name(stated: Mapping[str, Any] | None, where: str) -> str:
    """Raises ``TaskError`` for an unknown sampler."""
    sampler = str((stated or {}).get("sampler", "default"))
    if sampler not in SAMPLERS:
        raise TaskError(f"{where}: key 'fewshot_config': sampler {sampler!r}; valid are {', '.join(SAMPLERS)}")
    return sampler
