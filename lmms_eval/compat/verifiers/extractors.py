"""Extractors of answers (family names §5)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from lmms_eval.compat.verifiers.base import Extractor
from lmms_eval.filters.reasoning import TagPairs, strip_reasoning_tags
from lmms_eval.metrics.answers import extract_mcq_answer

THOUGHTS = (("<think>", "</think>"), ("<thinking>", "</thinking>"))
SPECIAL_TOKENS = ("</s>", "<|endoftext|>", "<|end_of_sentence|>", "<|im_end|>", "[/INST]")
_BOXED = "\\boxed{"
_NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?")


class StripReasoningExtractor(Extractor):
    """Removal of what stands between reasoning tags (harness specification §12.3)."""

    def __init__(self, tag_pairs: TagPairs = THOUGHTS) -> None:
        self.tag_pairs = tag_pairs

    def extract(self, text: Any, **kwargs: Any) -> str:
        """Return the trimmed rest; what is no text in its text form, ``None`` as empty text."""
        return strip_reasoning_tags("" if text is None else str(text), self.tag_pairs)


class RegexExtractor(Extractor):
    """A group of a pattern's first match.

    Args:
        pattern: regular expression of the task.
        group: number or name of the group; a pattern without it gives the whole match.
        fallback: result where nothing matches.
        flags: as ``re.compile`` takes them.
    """

    def __init__(self, pattern: str, group: int | str = 1, fallback: str = "", flags: int = 0) -> None:
        self.pattern, self.group, self.fallback = re.compile(pattern, flags), group, fallback

    def extract(self, text: Any, **kwargs: Any) -> str:
        """Return the group, trimmed.

        Raises:
            AttributeError: the pattern matches, but the group takes no part in it.
        """
        found = self.pattern.search(text)
        if found is None:
            return self.fallback
        try:
            group: str | None = found.group(self.group)
        except IndexError:
            group = found.group()
        if group is None:
            raise AttributeError(
                f"group {self.group} of {self.pattern.pattern!r} took no part in the match: choose another group"
            )
        return group.strip()


class MCQExtractor(Extractor):
    """The letter of a multiple-choice answer; the call's ``choices`` beat the constructor's."""

    def __init__(self, choices: Sequence[str] | None = None) -> None:
        self.choices = choices

    def extract(self, text: Any, **kwargs: Any) -> str:
        """Return the choice, or empty text."""
        return extract_mcq_answer(text, kwargs.get("choices", self.choices))


class NumberExtractor(Extractor):
    r"""The first ``\boxed{…}`` as it is, else the last number without its commas."""

    def __init__(self, fallback: str = "") -> None:
        self.fallback = fallback

    def extract(self, text: Any, **kwargs: Any) -> str:
        """Return the number's text, or the fallback."""
        begin = text.find(_BOXED)
        while begin >= 0:
            begin += len(_BOXED)
            end = text.find("}", begin)
            if end > begin:
                return str(text[begin:end]).strip()
            begin = text.find(_BOXED, begin) if end == begin else -1
        numbers = _NUMBER.findall(text)
        return str(numbers[-1]).replace(",", "") if numbers else self.fallback


class StripExtractor(Extractor):
    """Removal of special tokens of chat templates and of white space around."""

    def extract(self, text: Any, **kwargs: Any) -> str:
        """Return the trimmed rest."""
        for token in SPECIAL_TOKENS:
            text = text.replace(token, "")
        return str(text).strip()


EXTRACTOR_REGISTRY: Mapping[str, type[Extractor]] = MappingProxyType(
    {
        "strip_reasoning": StripReasoningExtractor,
        "regex": RegexExtractor,
        "mcq": MCQExtractor,
        "number": NumberExtractor,
        "strip": StripExtractor,
    }
)
"""Extractors by the names of configurations."""
