"""Accuracy of short answers about pictures against those of several people, as the VQA challenges measure it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

_CONTRACTIONS = """
    ain't aren't can't could've couldn't couldn't've didn't doesn't don't hadn't hadn't've hasn't haven't he'd
    he'd've he's how'd how'll how's isn't it'd it'd've it'll ma'am mightn't mightn't've might've mustn't must've
    needn't not've o'clock oughtn't 'ow's'at shan't she'd've should've shouldn't shouldn't've somebody'd've
    somebody'll somebody's someone'd someone'd've someone'll someone's something'd something'd've something'll
    that's there'd there'd've there're there's they'd they'd've they'll they're they've 'twas wasn't we'd've we've
    weren't what'll what're what's what've when's where'd where's where've who'd who'd've who'll who's who've why'll
    why're why's won't would've wouldn't wouldn't've y'all y'all'll y'all'd've you'd you'd've you'll you're you've
"""
CONTRACTIONS: Mapping[str, str] = MappingProxyType(
    {
        f"{word[:place]}{word[place + 1 :]}": word
        for word in _CONTRACTIONS.split()
        for place, character in enumerate(word)
        if character == "'"
    }
    | {"somebody'd": "somebodyd"}
)
"""Contractions by their spellings with one apostrophe left out; one entry of the script's list is reversed."""

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
_FULL_STOPS_REMOVED = 32
"""The challenges' script passes the value of a flag as a count."""
_AGREEING = 3
"""Number of people who must have given an answer for full credit."""


def answer_accuracy(answer: str, people: Sequence[str]) -> float:
    """Return the accuracy, from 0 to 1, of an answer against those of several people (Antol et al. 2015).

    For each person, every other person who gave the answer counts a third, at most 1 in total; the result is the mean
    over all persons, 0 without any. Texts are compared unchanged (see ``normalised``).
    """
    if not people:
        return 0.0
    given = sum(other == answer for other in people)
    return sum(min(1.0, (given - (one == answer)) / _AGREEING) for one in people) / len(people)


def normalised(text: str, has_words_apart: bool = True) -> str:
    """Return an answer without case, punctuation and articles, with digits for number words.

    The first step is ``words_apart``, which VQAv2's script omits.
    """
    words = words_apart(text) if has_words_apart else text
    words = words.replace("\n", " ").replace("\t", " ").strip()
    return digits_and_no_articles(without_punctuation(words, _FULL_STOPS_REMOVED))


def words_apart(text: str) -> str:
    """Return the text in lower case, without commas and question marks, ``'s`` set apart."""
    return text.lower().replace(",", "").replace("?", "").replace("'s", " 's").strip()


def without_punctuation(text: str, full_stops: int = 0, comma_in_number: re.Pattern[str] = _COMMA_IN_NUMBER) -> str:
    """Return the text without punctuation.

    A mark that is next to a blank anywhere is removed, and so are all marks of a text that has a number with a comma;
    any other mark becomes a blank. Full stops are removed unless a digit follows, and only the first ``full_stops`` of
    them unless that is 0.
    """
    has_comma_in_number = comma_in_number.search(text) is not None
    kept = text
    for mark in _PUNCTUATION:
        is_removed = has_comma_in_number or f"{mark} " in text or f" {mark}" in text
        kept = kept.replace(mark, "" if is_removed else " ")
    return _FULL_STOP.sub("", kept, count=full_stops)


def digits_and_no_articles(text: str) -> str:
    """Return the words in lower case without articles, number words as digits, contractions with apostrophes."""
    words = (_NUMBERS.get(word, word) for word in text.lower().split())
    return " ".join(CONTRACTIONS.get(word, word) for word in words if word not in _ARTICLES)
