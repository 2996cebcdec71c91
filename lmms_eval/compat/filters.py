"""Filters that task files of the family subclass."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.filters.patterns import ReducingRegexFilter


class ExtendedRegexFilter(ReducingRegexFilter):
    """Base of filters whose ``apply`` is part of a task's folder and searches with ``find_match``."""

    def find_match(self, regex: re.Pattern[str], resp: str, convert_dict: Mapping[str, Any] | None = None) -> Any:
        """Return the match with the number ``group_select``; of several groups the first that is not empty.

        Args:
            regex: the pattern to search by.
            resp: the text to search in.
            convert_dict: values that replace matches.

        Returns:
            The match without surrounding white space, or its value in ``convert_dict`` (unless the match is empty). An
            empty list if nothing matches.

        Raises:
            IndexError: there are fewer matches, or all groups are empty.
        """
        matches = regex.findall(resp)
        if not matches:
            return matches
        match = matches[self.group_select]
        if isinstance(match, tuple):
            match = [group for group in match if group][0]  # noqa: RUF015 - the error of an empty list is the contract
        match = match.strip()
        return convert_dict.get(match, match) if convert_dict and match else match


class SimpleMultiChoiceRegexFilter(ExtendedRegexFilter):
    """Finds the letter of the option whose text occurs in a document's first answer; else keeps the answer.

    ``doc["question"]`` lists the options as ``A. text``, one per line; their order gives the letters. Answers and
    options are compared without punctuation.
    """

    def apply(self, resps: Sequence[Any], docs: Sequence[Any]) -> list[Any]:
        return [self._letter(answers[0], doc["question"]) for answers, doc in zip(resps, docs, strict=True)]

    def _letter(self, answer: str, question: str) -> str:
        options = re.findall(r"\b[A-Z]\.\s+([^\n]*)", question)
        letters = {_words(option): chr(ord("A") + number) for number, option in enumerate(options)}
        letters.pop("", None)
        text = _words(answer)
        found = re.search("|".join(map(re.escape, letters)), text) if letters else None
        return letters[found[0]] if found else text


def _words(text: str) -> str:
    """Remove punctuation and symbols."""
    return re.sub(r"[^\w\s]", "", text).strip()
