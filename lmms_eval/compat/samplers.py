"""Samplers of few-shot examples for programs of the family; a run's own are in ``tasks/yaml/fewshot.py``."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from lmms_eval.errors import UnknownNameError


class ContextSampler:
    """Draws documents and writes them as examples.

    Args:
        docs: the documents that examples are taken from.
        task: writes a document (``doc_to_text``, ``doc_to_target``, ``doc_to_choice``); its ``config`` has the
            delimiters.
        fewshot_indices: numbers of the documents that may be drawn; by default all.
        rnd: the random number generator.
    """

    def __init__(
        self, docs: Any, task: Any, fewshot_indices: Sequence[int] | None = None, rnd: random.Random | None = None
    ) -> None:
        if rnd is None:
            raise ValueError("a sampler needs rnd, a random.Random")
        self.docs, self.task, self.rnd, self.config = docs, task, rnd, task.config
        if fewshot_indices is not None:
            self.docs = [docs[number] for number in fewshot_indices]
        self.target_delimiter = self.config.target_delimiter
        self.fewshot_delimiter = self.config.fewshot_delimiter
        self.doc_to_text, self.doc_to_target = task.doc_to_text, task.doc_to_target
        self.doc_to_choice = task.doc_to_choice

    def get_context(self, doc: Any, num_fewshot: int) -> str:
        """Write examples, each followed by the delimiter; the document itself is never one of them."""
        same = self.config.fewshot_split == self.config.test_split
        drawn = self.sample(num_fewshot + 1 if same else num_fewshot)
        chosen = [example for example in drawn if example != doc][:num_fewshot]
        texts = [f"{self._text(one)}{self.target_delimiter}{self._target(one)}" for one in chosen]
        return "".join(text + self.fewshot_delimiter for text in texts)

    def sample(self, n: int) -> Sequence[Any]:
        """Draw documents."""
        numbers = self.rnd.sample(range(len(self.docs)), n)
        return [self.docs[number] for number in numbers]

    def _text(self, doc: Any) -> str:
        text = self.doc_to_text(doc)
        choices = self.doc_to_choice(doc) if isinstance(text, int) else None
        return str(text if choices is None else choices[text])

    def _target(self, doc: Any) -> str:
        target = self.doc_to_target(doc)
        if isinstance(target, list):
            return str(target[0])
        choices = self.doc_to_choice(doc) if isinstance(target, int) and not isinstance(target, bool) else None
        return str(target if choices is None else choices[target])


class FirstNSampler(ContextSampler):
    """Takes the first documents."""

    def sample(self, n: int) -> Sequence[Any]:
        """Take the first documents.

        Raises:
            ValueError: there are fewer.
        """
        if n > len(self.docs):
            raise ValueError(f"{n} examples are requested, but there are only {len(self.docs)} documents")
        return [self.docs[number] for number in range(n)]


SAMPLERS = {"default": ContextSampler, "first_n": FirstNSampler}


def get_sampler(name: str) -> type[ContextSampler]:
    """Return a sampler by the name that ``fewshot_config`` gives.

    Raises:
        UnknownNameError: there is no such sampler.
    """
    if name not in SAMPLERS:
        raise UnknownNameError("few-shot sampler", name, SAMPLERS)
    return SAMPLERS[name]
