"""Option letters as the family's reasoning variants read them: loosely (family names §4.2).

``Dog`` names D and ``Answer: B`` names A. Scores of the family's unchanged tasks depend on these rules; no task of this
package uses them.
"""

from __future__ import annotations

from lmms_eval.metrics.answers import ABSENT, Sign, last_place, named_choice

LETTERS = "ABCDEFGH"
_PHRASES = (
    "the answer is", "answer is", "the correct answer is", "correct answer is", "the answer", "answer",
    "correct answer", "the correct answer", "the best answer is", "best answer is", "the best answer", "best answer",
    "the option is", "option is", "the correct option is", "correct option is", "the choice is", "choice is",
    "the correct choice is", "correct choice is", "i choose", "i select", "i pick", "my answer is", "my choice is",
)  # fmt: skip


def parse_mcq(text: str | None) -> str:
    """Find the letter from A to H that an answer names, or return empty text.

    Signs are tried from the clearest to the weakest: the answer begins with the letter, ends with it, numbers it
    (``2. B``), names it from a phrase on ("the answer"), in parentheses, before a full stop, a colon, a closing
    parenthesis or a blank, before ``-``, ``_`` or ``=``, anywhere. Of several letters with the same sign the first one
    in the text wins. Case matters.
    """
    return named_choice(text, LETTERS, _SIGNS, min)


def relax_exact_match(predict: str, truth: str, relax_portion: float = 0.9) -> float:
    """Compare two answers: 1.0 or 0.0.

    A truth in which ``parse_mcq`` finds a letter is compared by letters alone. Any other matches an equal text, and one
    that is a part of it, or of which it is a part, if the shorter has ``relax_portion`` of the longer one's length.
    """
    if letter := parse_mcq(truth):
        return float(parse_mcq(predict) == letter)
    if predict in truth and len(predict) >= relax_portion * len(truth):
        return 1.0
    if truth in predict and len(truth) >= relax_portion * len(predict):
        return 1.0
    return float(predict.strip() == truth.strip())


def _at_start(text: str, letter: str) -> int:
    return 0 if text.strip().startswith(letter) else ABSENT


def _at_end(text: str, letter: str) -> int:
    return 0 if text.strip().endswith(letter) else ABSENT


def _numbered(text: str, letter: str) -> int:
    return text.rfind(f"{LETTERS.index(letter) + 1}. {letter}")


def _from_phrase(text: str, letter: str) -> int:
    lowered = text.lower()
    begins = (lowered.find(phrase) for phrase in _PHRASES)
    places = [place for begin in begins if begin != ABSENT and (place := text.find(letter, begin)) != ABSENT]
    return min(places, default=ABSENT)


_SIGNS = (
    (Sign("letter at the start", _at_start),),
    (Sign("letter at the end", _at_end),),
    (Sign("letter behind its number", _numbered),),
    (Sign("letter from a phrase on", _from_phrase),),
    *((last_place(form),) for form in ("({})", "{}.", "{}:", "{})", "{} ")),
    (last_place("{}-"), last_place("{}_"), last_place("{}=")),
    (last_place("{}"),),
)
