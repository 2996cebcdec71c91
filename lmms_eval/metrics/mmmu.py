"""Open answers of MMMU: what a reply may mean, as numbers and texts, and whether one of them is right."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lmms_eval.utils import answer_reading
from lmms_eval.utils.answer_reading import guessed

MARKS = ",.!?;:'"
"""Marks that are taken off both ends of an answer, one kind after the other."""
SHORTEST_SENTENCE = 6
"""Words from which on an answer may name an option by its text."""


@dataclass(frozen=True, slots=True)
class Sign:
    """A way to write the letter that is meant; ``{}`` is the letter."""

    pattern: str
    """Regular expression that finds it."""
    place: str
    """Text whose last position decides between several letters."""
    name: str
    """Rule that the audit names."""


IN_PARENTHESES = Sign(r"\({}\)", "({})", answer_reading.IN_PARENTHESES)
BEFORE_BLANK = Sign("{} ", " {} ", answer_reading.BEFORE_BLANK)
BEFORE_PERIOD = Sign(r"{}\.", " {} ", answer_reading.BEFORE_STOP)
_MMMU = (IN_PARENTHESES, BEFORE_BLANK, BEFORE_PERIOD)
_AUDIO = (
    Sign(r"\({}\)", " {} ", answer_reading.IN_PARENTHESES),
    Sign(" {} ", " {} ", answer_reading.BETWEEN_BLANKS),
    BEFORE_PERIOD,
)
_EGOSCHEMA = {
    "({})": answer_reading.IN_PARENTHESES,
    "{} ": answer_reading.BEFORE_BLANK,
    "{}.": answer_reading.BEFORE_STOP,
}


def mmmu_letter(answer: str, options: Mapping[str, str], document: object) -> str:
    """Find the letter that an answer to a question of MMMU, MMMU-Pro or NExT-QA names, or draw one.

    A letter in parentheses counts before one that a blank follows, that before one with a full stop, and that before
    the text of an option (in answers of six words or more). Of several the last one is taken; letters of which none
    stands between blanks have no last one, and the first option's is taken.

    Args:
        answer: the answer.
        options: texts of the options by their letters.
        document: what tells the document from others; the draw depends on it.

    Raises:
        IndexError: there are no options.
    """
    found = clearest(padded(answer), tuple(options), options, _MMMU)
    return guessed(tuple(options), document) if found is None else found


def audio_letter(answer: str, letters: Sequence[str], document: object, drawn: Sequence[str] | None = None) -> str:
    """Find the letter that an answer to a question of MMAU or AIR-Bench names, or draw one.

    Other than in ``mmmu_letter`` a letter before a blank needs one on its other side too, texts of options are not
    looked for, and of several letters in parentheses, too, the last one between blanks is taken, else the first.

    Args:
        answer: the answer.
        letters: the letters that are looked for.
        document: what tells the document from others; the draw depends on it.
        drawn: the letters from which one is drawn, where these are others.

    Raises:
        IndexError: there are no letters.
    """
    found = clearest(padded(answer), letters, {}, _AUDIO)
    return guessed(letters if drawn is None else drawn, document) if found is None else found


def egoschema_letter(answer: str, options: Mapping[str, str], document: object) -> str:
    """Find the letter that an answer to a question of EgoSchema names (``egoschema_named``), or draw one.

    Raises:
        IndexError: there are no options.
    """
    return egoschema_named(answer, options) or guessed(tuple(options), document)


def egoschema_named(answer: str, options: Mapping[str, str]) -> str | None:
    """Find the letter that an answer to a question of EgoSchema names; ``None`` if it names none.

    Letters in parentheses, before a blank and before a full stop count alike; without any the text of an option does
    (in answers of six words or more). Of several the one whose own last place is the earliest is taken.
    """
    text = padded(answer)
    places = [(text.rfind(form.format(letter)), letter, form) for form in _EGOSCHEMA for letter in options]
    if all(place < 0 for place, *_ in places):
        places = [(place, letter, "") for place, letter in _option_places(text, options)]
    named = [(place, letter, form) for place, letter, form in places if place >= 0]
    if not named:
        return None
    _, letter, form = min(named, key=lambda found: found[0])
    rule = _EGOSCHEMA.get(form, answer_reading.OPTION_TEXT)
    answer_reading.note_letter(rule, text, *(one for _, one, _ in named))
    return letter


def padded(answer: str, marks: str = MARKS) -> str:
    """Return the answer without the marks at its ends, between two blanks."""
    for mark in marks:
        answer = answer.strip(mark)
    return f" {answer} "


def clearest(text: str, letters: Sequence[str], options: Mapping[str, str], signs: Iterable[Sign]) -> str | None:
    """Return the letter with the first sign that any letter has, else that of an option whose text occurs.

    Of several the last one is taken, and of those at no place of their own the first letter. What found it is noted for
    the audit.

    Args:
        text: the padded answer.
        letters: the letters.
        options: texts of options by letters; empty if they are not looked for.
        signs: from the clearest to the weakest.
    """
    for sign in signs:
        named = [letter for letter in letters if re.search(sign.pattern.format(re.escape(letter)), text)]
        if named:
            answer_reading.note_letter(sign.name, text, *named)
            return max(named, key=lambda letter, place=sign.place: text.rfind(place.format(letter)))  # type: ignore[misc]
    places = [(place, letter) for place, letter in _option_places(text, options) if place >= 0]
    if not places:
        answer_reading.note_reading(answer_reading.NOTHING)
        return None
    answer_reading.note_reading(answer_reading.OPTION_TEXT, *(letter for _, letter in places))
    return max(places, key=lambda found: found[0])[1]


def _option_places(text: str, options: Mapping[str, str]) -> list[tuple[int, str]]:
    """Last places of the options' texts; none in a text of few words."""
    if len(text.split()) < SHORTEST_SENTENCE:
        return []
    lowered = text.lower()
    return [(lowered.rfind(option.lower()), letter) for letter, option in options.items()]


Candidate = float | str

_LEADS = ("could be ", "so ", "is ", "thus ", "therefore ", "final ", "answer ", "result ")
"""Words that an answer follows."""
_EMPTY = frozenset((*":,.!?;'", ""))
# A number is tried from the first of its digits alone and gives none of them back, so that reading takes linear time.
_NUMBERS = (
    re.compile(r"-?\b\d{1,3}(?:,\d{3})+\b"),
    re.compile(r"-?(?<!\d)\d++(?:\.\d++)?[eE][+-]?\d+"),
    re.compile(r"-?(?:(?<!\d)\d++\.\d++|\.\d++|(?<!\d)\d++\b)(?![eE][+-]?\d)(?![,\d])"),
)
"""Numbers with commas, in scientific form, and simple ones."""


def candidates(answer: str) -> list[Candidate]:
    """Return what an answer may mean, each once: numbers from the smallest, then texts in alphabetic order."""
    parts = _key_parts(answer.strip().strip(".").lower())
    numbers = [number for part in parts for pattern in _NUMBERS for number in pattern.findall(part)]
    found = {meaning for text in (*parts, *numbers) for meaning in normalised(text)}
    return sorted(found, key=lambda meaning: (isinstance(meaning, str), meaning))


def _is_without_value(text: str) -> bool:
    """Find a text that reads as a number, but as an infinite one or as none."""
    try:
        return not math.isfinite(float(text.strip().replace(",", "")))
    except ValueError:
        return False


def normalised(text: str) -> list[Candidate]:
    """Return a text as number with two decimals, as text in lower case, or as a character beside a blank."""
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
    """Tell whether a number equals one of the reference answers, or a text contains one.

    A reference answer that Python reads as infinite or as no number (``inf``, ``nan``) equals nothing.

    Args:
        said: what the answer may mean, as ``candidates`` finds it.
        gold: the reference answers.
    """
    wanted = [meaning for text in gold if not _is_without_value(text) for meaning in normalised(text)]
    texts = [meaning for meaning in wanted if isinstance(meaning, str)]
    return any(
        any(text in meaning for text in texts) if isinstance(meaning, str) else meaning in wanted for meaning in said
    )


def _key_parts(text: str) -> list[str]:
    """Return what follows the last lead of each line, as short as possible; the whole text without any."""
    lines = text.split("\n")
    parts = []
    for number, line in enumerate(lines):
        leads = (*_LEADS, "=") if number == len(lines) - 1 else _LEADS
        tails = [line.rpartition(lead)[2].strip() for lead in leads if lead in line]
        if tails and (tail := min(tails, key=len)) not in _EMPTY:
            parts.append(tail)
    return parts or [text]
