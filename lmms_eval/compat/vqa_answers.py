"""Normalisation of answers to visual questions, as the EvalAI script of the VQA challenges does it."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Any

from lmms_eval.compat.contractions import CONTRACTIONS

_PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'
_NUMBERS = MappingProxyType(
    {
        "none": "0", "zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6",
        "seven": "7", "eight": "8", "nine": "9", "ten": "10",
    }
)  # fmt: skip
_ARTICLES = frozenset({"a", "an", "the"})
_COMMA_IN_NUMBER = re.compile(r"(?<=\d),++(?=\d)")
_FULL_STOP = re.compile(r"\.(?!\d)")


class EvalAIAnswerProcessor:
    """Normaliser of an answer: ``EvalAIAnswerProcessor()(text)``. Arguments are taken and not used."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, item: str) -> str:
        """Return the answer without case, punctuation and articles, with digits for number words."""
        text = self.word_tokenize(item).replace("\n", " ").replace("\t", " ").strip()
        return self.process_digit_article(self.process_punctuation(text))

    def word_tokenize(self, word: str) -> str:
        """Return the text in lower case, without commas and question marks, ``'s`` set apart."""
        return word.lower().replace(",", "").replace("?", "").replace("'s", " 's").strip()

    def process_punctuation(self, in_text: str) -> str:
        """Return the text without punctuation.

        A mark that stands beside a blank anywhere is removed, and so are all marks of a text that has a number with a
        comma; any other becomes a blank. Full stops are removed where no digit follows.
        """
        has_comma_in_number = _COMMA_IN_NUMBER.search(in_text) is not None
        text = in_text
        for mark in _PUNCTUATION:
            is_removed = has_comma_in_number or f"{mark} " in in_text or f" {mark}" in in_text
            text = text.replace(mark, "" if is_removed else " ")
        return _FULL_STOP.sub("", text)

    def process_digit_article(self, in_text: str) -> str:
        """Return the words in lower case without articles, number words as digits, contractions with apostrophes."""
        words = (_NUMBERS.get(word, word) for word in in_text.lower().split())
        return " ".join(CONTRACTIONS.get(word, word) for word in words if word not in _ARTICLES)
