"""Answers of MMMU and its relatives: the letter that a reply names, and the values that an open reply may mean."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from lmms_eval.metrics.answers import ABSENT, UNPLACED, Sign, clearest_choice, last_place
from lmms_eval.utils import answer_reading
from lmms_eval.utils.answer_reading import guessed

MARKS = ",.!?;:'"
"""Marks that are removed from both ends of an answer, one kind after the other."""
SHORTEST_SENTENCE = 6
"""Least number of words of an answer that may name an option by its text."""


def letter_sign(pattern: str, place: str, name: str) -> Sign:
    """Return the sign for a letter in a form. The audit calls it ``name``.

    The regular expression ``pattern`` finds the form, with ``{}`` for the letter. The last position of the text
    ``place`` decides between several letters.
    """

    def find(text: str, letter: str) -> int:
        if not re.search(pattern.format(re.escape(letter)), text):
            return ABSENT
        last = text.rfind(place.format(letter))
        return last if last >= 0 else UNPLACED

    return Sign(name, find)


IN_PARENTHESES = letter_sign(r"\({}\)", "({})", answer_reading.IN_PARENTHESES)
BEFORE_BLANK = letter_sign("{} ", " {} ", answer_reading.BEFORE_BLANK)
BEFORE_PERIOD = letter_sign(r"{}\.", " {} ", answer_reading.BEFORE_STOP)
_MMMU = (IN_PARENTHESES, BEFORE_BLANK, BEFORE_PERIOD)
_AUDIO = (
    letter_sign(r"\({}\)", " {} ", answer_reading.IN_PARENTHESES),
    letter_sign(" {} ", " {} ", answer_reading.BETWEEN_BLANKS),
    BEFORE_PERIOD,
)
_EGOSCHEMA = [last_place(form) for form in ("({})", "{} ", "{}.")]


def mmmu_letter(answer: str, options: Mapping[str, str], document: object) -> str:
    """Find the letter that an answer to a question of MMMU, MMMU-Pro or NExT-QA names, or draw one.

    A letter in parentheses takes precedence over a letter before a blank, this over one before a full stop, and this
    over the text of an option (in answers of six words or more). If there are several, the last one counts; letters
    that never occur between blanks have no position, and then the first option's letter counts. The draw depends on
    ``document``, which identifies the document. Raises ``IndexError`` if there are no options.
    """
    found = clearest(padded(answer), tuple(options), options, _MMMU)
    return guessed(tuple(options), document) if found is None else found


def audio_letter(answer: str, letters: Sequence[str], document: object, drawn: Sequence[str] | None = None) -> str:
    """Find the letter that an answer to a question of MMAU or AIR-Bench names, or draw one.

    Unlike ``mmmu_letter``, a letter before a blank needs a blank on its other side too, and texts of options are not
    searched. If several letters are in parentheses, the last one between blanks counts, else the first one. The draw is
    from ``drawn``, if given. Raises ``IndexError`` if there are no letters.
    """
    found = clearest(padded(answer), letters, {}, _AUDIO)
    return guessed(letters if drawn is None else drawn, document) if found is None else found


def egoschema_letter(answer: str, options: Mapping[str, str], document: object) -> str:
    """Find the letter that an answer to a question of EgoSchema names (``egoschema_named``), or draw one.

    Raises ``IndexError`` if there are no options.
    """
    return egoschema_named(answer, options) or guessed(tuple(options), document)


def egoschema_named(answer: str, options: Mapping[str, str]) -> str | None:
    """Find the letter that an answer to a question of EgoSchema names; ``None`` if it names no letter.

    Letters in parentheses, before a blank and before a full stop count alike. Without any of these, the text of an
    option counts (in answers of six words or more). If there are several, the one whose last position is the earliest
    wins.
    """
    text = padded(answer)
    letter = clearest_choice(text, tuple(options), [_EGOSCHEMA], min)
    if letter is None and (places := _option_places(text, options)):
        letter = min(places, key=lambda found: found[0])[1]
        answer_reading.note_letter(answer_reading.OPTION_TEXT, text, *(one for _, one in places))
    return letter


def padded(answer: str, marks: str = MARKS) -> str:
    """Return the answer without the marks at its ends, between two blanks."""
    for mark in marks:
        answer = answer.strip(mark)
    return f" {answer} "


def clearest(text: str, letters: Sequence[str], options: Mapping[str, str], signs: Iterable[Sign]) -> str | None:
    """Return the letter with the first sign that any letter has, else the letter of an option whose text occurs.

    ``signs`` are ordered from the clearest to the weakest. If there are several letters, the last one counts; without
    positions, the first letter. The audit records the sign. Without ``options``, their texts are ignored.
    """
    letter = clearest_choice(text, letters, ([sign] for sign in signs), max)
    if letter is not None:
        return letter
    places = _option_places(text, options)
    if not places:
        answer_reading.note_reading(answer_reading.NOTHING)
        return None
    answer_reading.note_reading(answer_reading.OPTION_TEXT, *(letter for _, letter in places))
    return max(places, key=lambda found: found[0])[1]


def _option_places(text: str, options: Mapping[str, str]) -> list[tuple[int, str]]:
    """Return the last positions of the options whose texts occur; an empty list for a text of few words."""
    if len(text.split()) < SHORTEST_SENTENCE:
        return []
    lowered = text.lower()
    places = ((lowered.rfind(option.lower()), letter) for letter, option in options.items())
    return [(place, letter) for place, letter in places if place >= 0]


Candidate = float | str

_LEADS = ("could be ", "so ", "is ", "thus ", "therefore ", "final ", "answer ", "result ")
"""Words that precede an answer."""
_EMPTY = frozenset((*":,.!?;'", ""))
# A match starts at a number's first digit and never gives digits back, so that reading takes linear time.
_NUMBERS = (
    re.compile(r"-?\b\d{1,3}(?:,\d{3})+\b"),
    re.compile(r"-?(?<!\d)\d++(?:\.\d++)?[eE][+-]?\d+"),
    re.compile(r"-?(?:(?<!\d)\d++\.\d++|\.\d++|(?<!\d)\d++\b)(?![eE][+-]?\d)(?![,\d])"),
)
"""Numbers with commas, in scientific form, and simple ones."""


def candidates(answer: str) -> list[Candidate]:
    """Return the distinct values that an answer may mean: numbers from the smallest, then texts in alphabetic order."""
    parts = _key_parts(answer.strip().strip(".").lower())
    numbers = [number for part in parts for pattern in _NUMBERS for number in pattern.findall(part)]
    found = {meaning for text in (*parts, *numbers) for meaning in normalised(text)}
    return sorted(found, key=lambda meaning: (isinstance(meaning, str), meaning))


def _is_without_value(text: str) -> bool:
    """Return whether a text reads as an infinite number or as NaN."""
    try:
        return not math.isfinite(float(text.strip().replace(",", "")))
    except ValueError:
        return False


def normalised(text: str) -> list[Candidate]:
    """Return a text as number with two decimals, as text in lower case, or as a character next to a blank."""
    text = text.strip()
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        number = math.nan
    if math.isfinite(number):
        return [round(number, 2)]
    text = text.lower()
    return [f" {text}", f"{text} "] if len(text) == 1 else [text]


def is_right(said: Iterable[Candidate], gold: Sequence[str]) -> bool:
    """Return whether one of the ``candidates`` is a number equal to a reference answer, or a text that contains one.

    Nothing equals a reference answer that Python reads as infinite or NaN (``inf``, ``nan``).
    """
    wanted = [meaning for text in gold if not _is_without_value(text) for meaning in normalised(text)]
    texts = [meaning for meaning in wanted if isinstance(meaning, str)]
    return any(
        any(text in meaning for text in texts) if isinstance(meaning, str) else meaning in wanted for meaning in said
    )


def _key_parts(text: str) -> list[str]:
    """Return the shortest text after a lead in each line; the whole text if it has no lead."""
    lines = text.split("\n")
    parts = []
    for number, line in enumerate(lines):
        leads = (*_LEADS, "=") if number == len(lines) - 1 else _LEADS
        tails = [line.rpartition(lead)[2].strip() for lead in leads if lead in line]
        if tails and (tail := min(tails, key=len)) not in _EMPTY:
            parts.append(tail)
    return parts or [text]
