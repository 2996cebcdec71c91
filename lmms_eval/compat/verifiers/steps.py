"""The steps of a verification: extractors cut the answer out of a text, and verifiers compare it with the truth."""

from __future__ import annotations

import abc
import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct, field

from lmms_eval.filters.reasoning import TagPairs, strip_reasoning_tags
from lmms_eval.metrics.answers import ABS_TOL, REL_TOL, bare_choice, extract_mcq_answer, is_contained, read_number


class VerifyResult(Struct):
    """Result of a verification. Task files change it, so it is not frozen."""

    score: float
    """From 0 to 1."""
    is_correct: bool
    raw_output: str = ""
    """The comparison in words, or the judge's reply."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """``confident``: a composite stops here; ``judge_failed``: the score says nothing about the answer."""


class Extractor(abc.ABC):
    """Step that cuts the answer out of a model's text."""

    @abc.abstractmethod
    def extract(self, text: Any, **kwargs: Any) -> str:
        """Return the extracted text; ``kwargs`` are the keywords of the verification."""

    def __call__(self, text: Any, **kwargs: Any) -> str:
        return self.extract(text, **kwargs)


class Verifier(abc.ABC):
    """Step that compares a prediction with the truth."""

    @abc.abstractmethod
    def verify(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        """Compare a prediction with the truth."""

    def __call__(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        return self.verify(question, prediction, ground_truth, **kwargs)


THOUGHTS = (("<think>", "</think>"), ("<thinking>", "</thinking>"))
SPECIAL_TOKENS = ("</s>", "<|endoftext|>", "<|end_of_sentence|>", "<|im_end|>", "[/INST]")
_BOXED = "\\boxed{"
_NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?")


class StripReasoningExtractor(Extractor):
    """Removes the text between reasoning tags (harness specification §12.3)."""

    def __init__(self, tag_pairs: TagPairs = THOUGHTS) -> None:
        self.tag_pairs = tag_pairs

    def extract(self, text: Any, **kwargs: Any) -> str:
        """Return the trimmed rest. Other values are converted to text, and ``None`` counts as empty text."""
        return strip_reasoning_tags("" if text is None else str(text), self.tag_pairs)


class RegexExtractor(Extractor):
    """A group of a pattern's first match.

    Args:
        pattern: regular expression of the task.
        group: number or name of the group; a pattern without it gives the whole match.
        fallback: result if nothing matches.
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


_LETTER = re.compile("[A-Z]")


def _result(is_correct: bool, raw_output: str, *, confident: bool) -> VerifyResult:
    return VerifyResult(float(is_correct), is_correct, raw_output, {"confident": confident})


class ExactMatchVerifier(Verifier):
    """Equality of texts; confident only of a match."""

    def __init__(self, ignore_case: bool = True, strip: bool = True) -> None:
        self.ignore_case, self.strip = ignore_case, strip

    def verify(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        """Compare the two texts."""
        one, other = self._folded(prediction), self._folded(ground_truth)
        return _result(one == other, f"exact_match: {one!r} vs {other!r}", confident=one == other)

    def _folded(self, text: str) -> str:
        text = text.strip() if self.strip else text
        return text.lower() if self.ignore_case else text


class ContainsVerifier(Verifier):
    """Containment of the truth in the prediction; confident only of a match."""

    def __init__(self, ignore_case: bool = True) -> None:
        self.ignore_case = ignore_case

    def verify(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        """Look for the truth in the prediction."""
        found = is_contained(ground_truth, prediction, self.ignore_case)
        if self.ignore_case:
            ground_truth = ground_truth.lower()
        return _result(found, f"contains: {ground_truth!r} in prediction={found}", confident=found)


class MCQMatchVerifier(Verifier):
    """Equality of two choices; confident if the prediction is one letter from A to Z."""

    def verify(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        """Compare the choices in upper case, without parentheses and full stops around them."""
        one, other = map(bare_choice, (prediction, ground_truth))
        return _result(one == other, f"mcq_match: {one!r} vs {other!r}", confident=bool(_LETTER.fullmatch(one)))


class NumericToleranceVerifier(Verifier):
    """Closeness of two numbers (``math.isclose``); confident if both could be read."""

    def __init__(self, rel_tol: float = REL_TOL, abs_tol: float = ABS_TOL) -> None:
        self.rel_tol, self.abs_tol = rel_tol, abs_tol

    def verify(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        """Compare the numbers that the two texts hold."""
        one, other = read_number(prediction), read_number(ground_truth)
        if one is None or other is None:
            return _result(False, f"numeric_parse_fail: pred={prediction!r} gt={ground_truth!r}", confident=False)
        close = math.isclose(one, other, rel_tol=self.rel_tol, abs_tol=self.abs_tol)
        return _result(close, f"numeric: {one} vs {other} (rel_tol={self.rel_tol})", confident=True)


class CompositeVerifier(Verifier):
    """The first confident of several verifiers, cheap ones first; without one, the last.

    Raises:
        ValueError: no verifiers.
    """

    def __init__(self, verifiers: Sequence[Verifier]) -> None:
        if not verifiers:
            raise ValueError("a composite verifier needs at least one verifier: fill its list 'verifiers'")
        self.verifiers = list(verifiers)

    def verify(self, question: str, prediction: str, ground_truth: str, **kwargs: Any) -> VerifyResult:
        """Return the first result whose metadata do not deny ``confident``, else the last one."""
        *others, last = self.verifiers
        for verifier in others:
            result = verifier(question, prediction, ground_truth, **kwargs)
            if result.metadata.get("confident", True):
                return result
        return last(question, prediction, ground_truth, **kwargs)
