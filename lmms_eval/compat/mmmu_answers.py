"""Option letters in answers to the questions of MMMU and of the benchmarks that follow it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lmms_eval.metrics.mmmu import (
    BEFORE_BLANK,
    BEFORE_PERIOD,
    IN_PARENTHESES,
    MARKS,
    LetterSign,
    clearest,
    mmmu_letter,
    padded,
)
from lmms_eval.utils.answer_reading import guessed

_JAPANESE_MARKS = "、。！？；："
_JAPANESE = r"[\u3040-\u30FF\u4E00-\u9FFF]"
_AMONG_JAPANESE = LetterSign(f"{_JAPANESE}{{}}{_JAPANESE}", " {} ", "letter among Japanese")
_JMMMU = (IN_PARENTHESES, BEFORE_BLANK, _AMONG_JAPANESE, BEFORE_PERIOD)
_VIDEOMMMU = (
    LetterSign(r"{}\.", "{}.", BEFORE_PERIOD.name),
    LetterSign("{}:", "{}:", "letter before a colon"),
    IN_PARENTHESES,
    BEFORE_BLANK,
)


def get_multi_choice_info(options: Iterable[Any], start_chr: str = "A") -> tuple[dict[str, Any], list[str]]:
    """Return the options by their letters, which count up from ``start_chr`` by code point, and the list of letters.

    Raises:
        TypeError: ``start_chr`` is not one character.
    """
    index2ans = {chr(ord(start_chr) + place): option for place, option in enumerate(options)}
    return index2ans, list(index2ans)


def parse_mmmu_multi_choice_response(response: str, all_choices: Sequence[str], index2ans: Mapping[str, Any]) -> str:
    """Find the letter that an answer names as ``mmmu_letter`` does; else draw one by the run's seed and the answer.

    Raises:
        IndexError: there are no choices.
        AttributeError: an option is not a text and the search reaches the texts of options.
    """
    options: dict[str, Any] = {choice: index2ans.get(choice) for choice in all_choices}
    return mmmu_letter(response, options, response)


def parse_jmmmu_multi_choice_response(response: str, all_choices: Sequence[str], index2ans: Mapping[str, Any]) -> str:
    """Find the letter as ``parse_mmmu_multi_choice_response`` does, in Japanese answers also within the text."""
    found = clearest(padded(response, MARKS + _JAPANESE_MARKS), all_choices, index2ans, _JMMMU)
    return guessed(all_choices, response) if found is None else found


def parse_videommmu_multi_choice_response(
    response: str, all_choices: Sequence[str], index2ans: Mapping[str, Any]
) -> str:
    """Find the letter that an answer to a Video-MMMU question names, or return ``No Answer Found.``.

    A letter with a full stop takes precedence, then a colon, parentheses, a following blank, and the text of an option
    (in answers of six words or more). Empty answers, and the text ``API Error``, give ``API Error``.

    Raises:
        AttributeError: an option is not a text and the search reaches the texts of options.
    """
    if response in ("", "API Error"):
        return "API Error"
    return clearest(padded(response), all_choices, index2ans, _VIDEOMMMU) or "No Answer Found."


_FULL_WIDTH = str.maketrans({chr(ord("Ａ") + place): chr(ord("A") + place) for place in range(26)})
# Each run of blanks matches only one part of the expression, so that reading them takes linear time.
_STATED = re.compile(
    r"(?:answer|final|correct|solution|ans|正解(?:は)?|答え(?:は)?|解答(?:は)?)\s*+(?:[:：]\s*+)?+"
    r"[【\[(\u3010\u3011*_-]*+([A-Z])[】\])*_-]*\b",
    re.IGNORECASE,
)
_LETTER = re.compile(r"([A-Z])[】\])*]*\b", re.IGNORECASE)
_OPTION_LINE = re.compile(r"(?:[-*・>\u2022]\s*)?[A-ZＡ-Ｚ][.)\u3001\u3002：:]", re.IGNORECASE)


def parse_jmmmu_pro_multi_choice_response(response: str | None, all_choices: Sequence[str]) -> str:
    """Find the letter that an answer to a JMMMU-Pro question states, or return ``X``; no letter is drawn.

    A letter after a word such as "answer" counts, and the first line takes precedence. Otherwise the last letter at the
    end of a word counts, outside lines that list an option. Full-width letters are read as ASCII letters.
    """
    text = (response or "").translate(_FULL_WIDTH)
    lines = [line for part in text.splitlines() if (line := part.strip())]
    if not lines:
        return "X"
    letter = "X"
    if stated := _STATED.search(lines[0]) or _STATED.search(text):
        letter = stated[1].upper()
    elif letters := [match[1] for line in lines if not _OPTION_LINE.match(line) for match in _LETTER.finditer(line)]:
        letter = letters[-1].upper()
    return letter if letter in all_choices else "X"
