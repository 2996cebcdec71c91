"""Watching the ``generate`` of a checkpoint while its ``chat`` runs: tokens and the prompt's end, which it hides."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

PROMPT_END_TOKENS = 32
"""Last tokens of a prompt that are looked at: an opening tag of thoughts has room in them."""


@dataclass(frozen=True, slots=True)
class Generated:
    """One row of a generation."""

    ids: list[int]
    """Of the answer, without the end token."""
    tokens: int
    """With the end token."""
    is_ended: bool
    """``False``: the limit of length cut it off."""


@dataclass(slots=True)
class Watch:
    """The generation that was watched last."""

    prompt_ends: list[list[int]] = field(default_factory=list)
    """Last token ids of each prompt; empty where ``generate`` got none."""
    _output: Any = None
    _arguments: dict[str, Any] = field(default_factory=dict)
    _end_ids: frozenset[int] = frozenset()
    _depth: int = 0

    def rows(self, count: int, max_new_tokens: int) -> list[Generated | None]:
        """Return the rows of the generation.

        Args:
            count: of the rows; where the generation has another number, nothing is known.
            max_new_tokens: limit of each row.
        """
        rows = [] if self._output is None else self._output.tolist()
        if len(rows) != count:
            return [None] * count
        given = self._arguments.get("input_ids")
        start = 0 if given is None or self._arguments.get("inputs_embeds") is not None else int(given.shape[1])
        return [self._row(row[start:], max_new_tokens) for row in rows]

    def _row(self, ids: list[int], max_new_tokens: int) -> Generated:
        for place, number in enumerate(ids):
            if number in self._end_ids:
                return Generated(ids[:place], place + 1, True)
        return Generated(ids, len(ids), len(ids) < max_new_tokens)

    def call(self, module: Any, generate: Callable[..., Any], *values: Any, **arguments: Any) -> Any:
        """Call ``generate``. The innermost of nested calls gives the tokens, the outermost has the prompt."""
        if self._depth == 0:
            self._output, self.prompt_ends = None, []
        if not self.prompt_ends:
            self.prompt_ends = _ends(arguments.get("input_ids"))
        self._depth += 1
        try:
            result = generate(*values, **arguments)
        finally:
            self._depth -= 1
        sequences = getattr(result, "sequences", result)
        if self._output is None and getattr(sequences, "ndim", 0) == 2:
            self._output, self._arguments = sequences, arguments
            self._end_ids = _end_ids(module, arguments)
        return result


def _ends(input_ids: Any) -> list[list[int]]:
    if input_ids is None:
        return []
    return [row[-PROMPT_END_TOKENS:].tolist() for row in input_ids if getattr(row, "ndim", 0) == 1]


def _end_ids(module: Any, arguments: dict[str, Any]) -> frozenset[int]:
    """The end tokens of a generation: of its arguments, else of the configuration that holds for it."""
    own = (arguments.get("generation_config"), getattr(module, "generation_config", None))
    stated = (arguments.get("eos_token_id"), *(getattr(config, "eos_token_id", None) for config in own))
    ends: Any = next((value for value in stated if value is not None), [])
    return frozenset(ends if isinstance(ends, Sequence) else [int(ends)])


@contextmanager
def watched(model: Any) -> Iterator[Watch]:
    """Watch ``generate`` of a model and of its parts; of a model without one nothing is known afterwards."""
    watch, before = Watch(), {}
    parts = [model, *(model.children() if callable(getattr(model, "children", None)) else ())]
    for part in parts:
        generate = getattr(part, "generate", None)
        if callable(generate):
            before[part] = vars(part).get("generate")
            part.generate = functools.partial(watch.call, part, generate)
    try:
        yield watch
    finally:
        for part, own in before.items():
            if own is None:
                del part.generate
            else:
                part.generate = own
