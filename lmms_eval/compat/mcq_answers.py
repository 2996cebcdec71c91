"""Option letters in answers to multiple-choice questions, by the family's algorithm."""

from __future__ import annotations

from collections.abc import Callable, Sequence

_CHOICES = ("A", "B", "C", "D", "E", "F", "G", "H")
_OUTER_MARKS = ",.!?;:'\""
_PHRASES = (
    "the answer is", "answer is", "the correct answer is", "correct answer is", "the best answer is", "best answer is",
    "the correct option is", "correct option is", "the best option is", "best option is", "the choice is", "choice is",
    "the correct choice is", "correct choice is", "i choose", "i select", "i pick", "my answer is", "my choice is",
    "옵션", "정답은", "답은", "답:", "答案是", "答案为", "选", "答えは",
)  # fmt: skip
_ABSENT = -1

Sign = Callable[[str, str], int]
"""Position of a choice in a text where it is marked as the answer in one way; ``_ABSENT`` where it is not."""


def extract_mcq_answer(response: str | None, choices: Sequence[str] | None = None) -> str:
    """Find the choice that an answer names, or return empty text.

    Signs are tried from the clearest to the weakest: the answer begins with the choice, ends with it, names it after a
    phrase ("the answer is"), in parentheses, before a full stop, a colon, a closing parenthesis or a blank, anywhere.
    Of several choices with the same sign the last one in the text wins. Upper and lower case are told apart.

    Args:
        response: the answer; ``None`` counts as empty.
        choices: the letters, by default A to H.
    """
    text = (response or "").strip()
    for mark in _OUTER_MARKS:
        text = text.strip(mark)
    text = f" {text} "
    for sign in _SIGNS:
        positions = {choice: sign(text, choice) for choice in choices or _CHOICES}
        last = max(positions, key=positions.__getitem__)  # the first choice of those at the same place
        if positions[last] != _ABSENT:
            return last
    return ""


def _at_start(text: str, choice: str) -> int:
    answer = text.strip()
    return 0 if answer.startswith(choice) and not answer[1:2].isalpha() else _ABSENT


def _at_end(text: str, choice: str) -> int:
    answer = text.strip()
    return len(text) - 1 if answer.endswith(choice) and not answer[-2:-1].isalpha() else _ABSENT


def _after_phrase(text: str, choice: str) -> int:
    lowered = text.lower()
    begins = ((phrase, lowered.find(phrase)) for phrase in _PHRASES)
    return max(text.find(choice, begin + len(phrase)) if begin != _ABSENT else _ABSENT for phrase, begin in begins)


def _last(form: str) -> Sign:
    return lambda text, choice: text.rfind(form.format(choice))


_SIGNS: tuple[Sign, ...] = (
    _at_start,
    _at_end,
    _after_phrase,
    *map(_last, ("({})", "{}.", "{}:", "{})", "{} ", "{}")),
)
