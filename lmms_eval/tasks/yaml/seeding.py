"""Seeds ``random`` by (run seed, task, document) before each call of a task's functions."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from lmms_eval.tasks.yaml.functions import module_source
from lmms_eval.utils.answer_reading import RUN_SEED

_LOCK = threading.RLock()


class Seeding:
    """Seeds for one task. All threads share the generator, so a seeded call holds a lock.

    Prompt functions run in many threads. They are seeded and serialised only if one of their modules names random.

    Args:
        seed: the run's seed.
        task: the task's name.
        prompt_functions: functions that make prompts.
        is_scored_by_us: only functions of this package score. They draw no random numbers, and seeding is slow.
        scoring_functions: functions that score answers.
    """

    def __init__(
        self, seed: int, task: str, prompt_functions: Iterable[Any], is_scored_by_us: bool = False,
        scoring_functions: Iterable[Any] = (),
    ) -> None:  # fmt: skip
        self._seed, self._prefix = seed, f"{seed}:{task}:"
        draws = any("random" in module_source(function) for function in prompt_functions)
        self.prompt: Callable[[int], AbstractContextManager[Any]] = self._seeded if draws else nullcontext
        """Returns a context for calls that make a prompt, by the number of the document."""
        self.scoring: Callable[[int], AbstractContextManager[Any]] = nullcontext if is_scored_by_us else self._seeded
        """Returns a context for calls that score an answer, by the number of the document."""
        self.scoring_may_draw = any("random" in module_source(function) for function in scoring_functions)
        """A module of a function that scores answers names random."""

    @contextmanager
    def _seeded(self, doc_id: int) -> Iterator[None]:
        with _LOCK:
            random.seed(f"{self._prefix}{doc_id}")
            previous = RUN_SEED.set(self._seed)
            try:
                yield
            finally:
                RUN_SEED.reset(previous)
