"""``random`` as a task's functions find it: seeded by (run seed, task, document) before each call."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from lmms_eval.tasks.yaml.functions import module_source

_LOCK = threading.RLock()


class Seeding:
    """Seeds for one task. The generator is one for all threads, so a seeded call holds a lock.

    Prompt functions run in many threads: they are seeded, and held apart, only if a module of theirs names random.
    """

    def __init__(self, seed: int, task: str, prompt_functions: Iterable[Any]) -> None:
        self._prefix = f"{seed}:{task}:"
        self._prompts = any("random" in module_source(function) for function in prompt_functions)

    @contextmanager
    def prompt(self, doc_id: int) -> Iterator[None]:
        """Around calls that make a prompt."""
        if not self._prompts:
            yield
            return
        with self.scoring(doc_id):
            yield

    @contextmanager
    def scoring(self, doc_id: int) -> Iterator[None]:
        """Around calls that score an answer."""
        with _LOCK:
            random.seed(f"{self._prefix}{doc_id}")
            yield
