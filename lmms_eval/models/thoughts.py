"""Thoughts and stop strings in generated texts, read in the same way by all local back ends.

Source: engine rules, section 16.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.api.response import Thoughts
from lmms_eval.filters.reasoning import THOUGHT_TAGS, split_thoughts

if TYPE_CHECKING:
    from lmms_eval.api.request import Request

Pairs = tuple[tuple[str, str], ...]


class Written(Struct, frozen=True):
    """An answer that was read from a generated text."""

    text: str
    """The answer up to its first stop string."""
    thoughts: Thoughts | None = None
    ended_by: str | None = None
    """The stop string that ended the answer; empty if none did, and ``None`` without stop strings."""
    reasoning: str = ""
    """The thoughts with their tags, even if the text keeps them."""

    @property
    def answer(self) -> str:
        """The text after the thoughts."""
        return self.text if self.thoughts is not None else self.text.removeprefix(self.reasoning)


class ReadingRules(Struct, frozen=True):
    """The rules for reading the answer to one request.

    Stop strings apply to the answer only, not to the thoughts or the white space after them.
    """

    until: tuple[str, ...] = ()
    pairs: Pairs = THOUGHT_TAGS
    """The opening and closing tags of thoughts."""
    is_opened: bool = False
    """Whether the prompt ends with an opening tag, so that the model begins inside a thought."""
    follows_thoughts: bool = False
    """Whether the thoughts were returned separately, so that the text is what follows them."""
    keeps_thoughts: bool = False
    """Whether the task keeps thoughts as part of the answer."""

    @classmethod
    def of(cls, request: Request, prompt: str, until: Sequence[str] = ()) -> ReadingRules:
        """Return the rules for a request, by its task's tags, the end of its prompt, and its stop strings."""
        tags = getattr(request.task, "thought_tags", None)  # requests of plugins have no task
        pairs = tuple(tags or THOUGHT_TAGS)
        is_opened = bool(prompt) and prompt.rstrip().endswith(tuple(opening for opening, _ in pairs))
        return cls(tuple(until), pairs, is_opened, keeps_thoughts=tags is not None and not tags)

    def read(self, text: str) -> Written:
        """Read a complete text of the model."""
        thoughts, answer = split_thoughts(text, self.pairs, self.is_opened)
        reasoning = text[: len(text) - len(answer)] if thoughts is not None else ""
        stop = self._first_stop(answer, after_thoughts=thoughts is not None or self.follows_thoughts)
        if stop is not None:
            answer = answer[: stop[0]]
        ended_by = None if not self.until else "" if stop is None else stop[1]
        if self.keeps_thoughts:
            return Written(reasoning + answer, None, ended_by, reasoning)
        return Written(answer, thoughts, ended_by, reasoning)

    def is_thinking(self, text: str) -> bool:
        """Return whether a text ends inside a thought."""
        thoughts, _ = split_thoughts(text, self.pairs, self.is_opened)
        return thoughts is not None and not thoughts.is_finished

    def _first_stop(self, answer: str, after_thoughts: bool) -> tuple[int, str] | None:
        start = len(answer) - len(answer.lstrip()) if after_thoughts else 0
        places = [(place, stop) for stop in self.until if (place := answer.find(stop, start)) >= 0]
        return min(places, key=lambda each: each[0], default=None)


class TagTokens:
    """Decodes answers so that tags of thoughts stay visible, even if they are special tokens of the tokenizer.

    Special tokens are left out of answers. If ``[THINK]`` is one, the thought would otherwise become the answer.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._special = special_tokens(tokenizer)
        self.of = functools.cache(self._of)

    def _of(self, pairs: Pairs) -> Mapping[int, str]:
        """Return the special tokens that occur in tags, by their ids."""
        tags = [tag for pair in pairs for tag in pair]
        return {number: text for number, text in self._special.items() if any(text in tag for tag in tags)}

    def decode(self, ids: Sequence[int], pairs: Pairs, skip_special_tokens: bool) -> str:
        """Decode an answer. ``skip_special_tokens`` leaves out all special tokens except those of tags."""
        if skip_special_tokens and self.has_tags(ids, pairs):
            shown = self.of(pairs)
            ids = [number for number in ids if number in shown or number not in self._special]
            skip_special_tokens = False
        text: str = self._tokenizer.decode(
            ids, skip_special_tokens=skip_special_tokens, clean_up_tokenization_spaces=False
        )
        return text

    def read(self, ids: Sequence[int], reading: ReadingRules, skip_special_tokens: bool) -> Written:
        """Decode an answer and read it."""
        written = reading.read(self.decode(ids, reading.pairs, skip_special_tokens))
        is_to_tidy = skip_special_tokens and self.has_tags(ids, reading.pairs)
        return self._tidied(written, reading) if is_to_tidy else written

    def read_text(self, text: str, reading: ReadingRules) -> Written:
        """Read an answer that was decoded elsewhere with all its special tokens."""
        shown = self.of(reading.pairs)
        for number, token in self._special.items():
            if number not in shown:
                text = text.replace(token, "")
        return self._tidied(reading.read(text), reading)

    def has_tags(self, ids: Sequence[int], pairs: Pairs) -> bool:
        """Return whether an answer contains special tokens of tags."""
        return not self.of(pairs).keys().isdisjoint(ids)

    def _tidied(self, written: Written, reading: ReadingRules) -> Written:
        """Remove special tokens of tags from the answer if they do not enclose thoughts."""
        answer = written.answer
        for token in self.of(reading.pairs).values():
            answer = answer.replace(token, "")
        return replace(written, text=written.reasoning + answer if reading.keeps_thoughts else answer)

    def count(self, written: Written, output_tokens: int | None) -> int | None:
        """Return the number of tokens of the thoughts; ``None`` without thoughts."""
        if not written.reasoning:
            return None
        if written.thoughts is not None and not written.thoughts.is_finished and output_tokens is not None:
            return output_tokens
        count = len(self._tokenizer.encode(written.reasoning, add_special_tokens=False))
        return count if output_tokens is None else min(count, output_tokens)


def special_tokens(tokenizer: Any) -> dict[int, str]:
    """Return the texts of a tokenizer's special tokens, by their ids."""
    added = getattr(tokenizer, "added_tokens_decoder", None) or {}
    found = {int(number): str(token) for number, token in added.items() if getattr(token, "special", False)}
    for token in getattr(tokenizer, "all_special_tokens", ()):
        found[int(tokenizer.convert_tokens_to_ids(token))] = str(token)
    return {number: text for number, text in found.items() if text}
