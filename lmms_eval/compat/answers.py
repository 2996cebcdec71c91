"""Readers and comparisons of answers, by the names that task files of the family import."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmms_eval.metrics import vqa
from lmms_eval.metrics.math_answers import DEFAULT_TIMEOUT_S, boxed, evaluate
from lmms_eval.metrics.math_answers import default_verify as default_verify
from lmms_eval.metrics.mmmu import (
    BEFORE_BLANK,
    BEFORE_PERIOD,
    IN_PARENTHESES,
    MARKS,
    clearest,
    letter_sign,
    mmmu_letter,
    padded,
)
from lmms_eval.metrics.speech import without_spans
from lmms_eval.utils.answer_reading import guessed

_PAIR = re.compile(r"[\[(]\s*+([-+]?\d++(?:\.\d*+)?+)\s*+,\s*+([-+]?\d++(?:\.\d*+)?+)\s*+[\])]")
_THOUSANDTHS = 1000
_FARTHEST = 2.0**62
"""Pixels that a 64-bit integer holds; an answer may state more."""


def parse_point2d(text: str, width: float, height: float) -> NDArray[Any]:
    """Read the points ``(x, y)`` or ``[x, y]`` of an answer as pixels of a picture of this width and height.

    A pair with a decimal point in either number is a share of the picture, any other is in thousandths of it. Pixels
    are truncated toward zero; points outside the picture stay outside. The whole numbers have the shape (points, 2), or
    (0,) if the answer has no points.
    """
    points = []
    for x, y in _PAIR.findall(text):
        whole = 1 if "." in x or "." in y else _THOUSANDTHS
        points.append((_pixel(x, whole, width), _pixel(y, whole, height)))
    return np.array(points)


def _pixel(number: str, whole: int, length: float) -> int:
    value = max(-sys.float_info.max, min(float(number), sys.float_info.max)) / whole * length
    return int(max(-_FARTHEST, min(value, _FARTHEST)))


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
        return vqa.words_apart(word)

    def process_punctuation(self, in_text: str) -> str:
        """Return the text without punctuation: see ``lmms_eval.metrics.vqa.without_punctuation``."""
        return vqa.without_punctuation(in_text)

    def process_digit_article(self, in_text: str) -> str:
        """Return the words in lower case without articles, number words as digits, contractions with apostrophes."""
        return vqa.digits_and_no_articles(in_text)


class MathVerifyFn:
    r"""Comparison of a solution's ``\boxed{…}`` or LaTeX answer with the truth.

    ``timeout_seconds`` bounds each step of the package. With ``strict``, variables are compared by their names, and
    sets by their kind. ``silent`` has no effect, as the child process writes nothing.
    """

    def __init__(
        self,
        correct_score: float = 1.0,
        incorrect_score: float = 0.0,
        timeout_seconds: int = DEFAULT_TIMEOUT_S,
        strict: bool = True,
        silent: bool = True,
    ) -> None:
        self.correct_score, self.incorrect_score = correct_score, incorrect_score
        self.timeout_seconds, self.strict, self.silent = timeout_seconds, strict, silent

    preprocess_answer = staticmethod(boxed)

    def __call__(self, solution: Any, ground_truth: Any) -> tuple[float, str]:
        """Return the score and the answer that was found in the solution; a failure counts as an incorrect answer.

        Nothing equals a truth that is null or empty; the answer is still extracted. Raises ``NotEvaluated`` if the
        package is not installed.
        """
        if not isinstance(solution, str) or (ground_truth and not isinstance(ground_truth, str)):
            return self.incorrect_score, ""
        truth, bound = boxed(ground_truth or ""), self.timeout_seconds or DEFAULT_TIMEOUT_S
        found = evaluate("verify_boxed", solution, truth, bound, self.strict, timeout_s=bound)
        if found is None:
            return self.incorrect_score, ""
        is_equal, extracted = found
        return (self.correct_score if is_equal else self.incorrect_score), extracted


_JAPANESE_MARKS = "、。！？；："
_JAPANESE = r"[\u3040-\u30FF\u4E00-\u9FFF]"
_AMONG_JAPANESE = letter_sign(f"{_JAPANESE}{{}}{_JAPANESE}", " {} ", "letter among Japanese")
_JMMMU = (IN_PARENTHESES, BEFORE_BLANK, _AMONG_JAPANESE, BEFORE_PERIOD)
_VIDEOMMMU = (
    letter_sign(r"{}\.", "{}.", BEFORE_PERIOD.name),
    letter_sign("{}:", "{}:", "letter before a colon"),
    IN_PARENTHESES,
    BEFORE_BLANK,
)


def get_multi_choice_info(options: Iterable[Any], start_chr: str = "A") -> tuple[dict[str, Any], list[str]]:
    """Return the options by their letters, which count up from ``start_chr`` by code point, and the list of letters.

    Raises ``TypeError`` if ``start_chr`` is not one character.
    """
    index2ans = {chr(ord(start_chr) + place): option for place, option in enumerate(options)}
    return index2ans, list(index2ans)


def parse_mmmu_multi_choice_response(response: str, all_choices: Sequence[str], index2ans: Mapping[str, Any]) -> str:
    """Find the letter that an answer names as ``mmmu_letter`` does; else draw one by the run's seed and the answer.

    Raises ``IndexError`` without choices, and ``AttributeError`` if the search reaches an option that is not a text.
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
    (in answers of six words or more). Empty answers, and the text ``API Error``, give ``API Error``. Raises
    ``AttributeError`` if the search reaches an option that is not a text.
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


_MARKS = (("<answer>", "</answer>"), (r"\boxed{", "}"))


def parse_reasoning_model_answer(text: str) -> str:
    r"""Return an answer without its thoughts, white space around it trimmed.

    Closed ``<think>…</think>`` blocks go first. Of the rest counts the first ``<answer>…</answer>``, else the first
    ``\boxed{…}``, which ends at its first closing brace (``\boxed{\frac{1}{2}}`` gives ``\frac{1``: scores of the
    family rest on it), else all of it.
    """
    rest = without_spans(text, "<think>", "</think>")
    for opening, closing in _MARKS:
        _, _, after = rest.partition(opening)
        inner, found, _ = after.partition(closing)
        if found:
            return inner.strip()
    return rest.strip()
