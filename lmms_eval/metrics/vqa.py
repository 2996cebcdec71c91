"""Accuracy of short answers about pictures against those of several people, as the VQA challenges measure it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

CONTRACTIONS: Mapping[str, str] = MappingProxyType(
    {
        "aint": "ain't",
        "arent": "aren't",
        "cant": "can't",
        "couldve": "could've",
        "couldnt": "couldn't",
        "couldn'tve": "couldn't've",
        "couldnt've": "couldn't've",
        "didnt": "didn't",
        "doesnt": "doesn't",
        "dont": "don't",
        "hadnt": "hadn't",
        "hadnt've": "hadn't've",
        "hadn'tve": "hadn't've",
        "hasnt": "hasn't",
        "havent": "haven't",
        "hed": "he'd",
        "hed've": "he'd've",
        "he'dve": "he'd've",
        "hes": "he's",
        "howd": "how'd",
        "howll": "how'll",
        "hows": "how's",
        "isnt": "isn't",
        "itd": "it'd",
        "itd've": "it'd've",
        "it'dve": "it'd've",
        "itll": "it'll",
        "maam": "ma'am",
        "mightnt": "mightn't",
        "mightnt've": "mightn't've",
        "mightn'tve": "mightn't've",
        "mightve": "might've",
        "mustnt": "mustn't",
        "mustve": "must've",
        "neednt": "needn't",
        "notve": "not've",
        "oclock": "o'clock",
        "oughtnt": "oughtn't",
        "ow's'at": "'ow's'at",
        "'ows'at": "'ow's'at",
        "'ow'sat": "'ow's'at",
        "shant": "shan't",
        "shed've": "she'd've",
        "she'dve": "she'd've",
        "shouldve": "should've",
        "shouldnt": "shouldn't",
        "shouldnt've": "shouldn't've",
        "shouldn'tve": "shouldn't've",
        "somebody'd": "somebodyd",
        "somebodyd've": "somebody'd've",
        "somebody'dve": "somebody'd've",
        "somebodyll": "somebody'll",
        "somebodys": "somebody's",
        "someoned": "someone'd",
        "someoned've": "someone'd've",
        "someone'dve": "someone'd've",
        "someonell": "someone'll",
        "someones": "someone's",
        "somethingd": "something'd",
        "somethingd've": "something'd've",
        "something'dve": "something'd've",
        "somethingll": "something'll",
        "thats": "that's",
        "thered": "there'd",
        "thered've": "there'd've",
        "there'dve": "there'd've",
        "therere": "there're",
        "theres": "there's",
        "theyd": "they'd",
        "theyd've": "they'd've",
        "they'dve": "they'd've",
        "theyll": "they'll",
        "theyre": "they're",
        "theyve": "they've",
        "twas": "'twas",
        "wasnt": "wasn't",
        "wed've": "we'd've",
        "we'dve": "we'd've",
        "weve": "we've",
        "werent": "weren't",
        "whatll": "what'll",
        "whatre": "what're",
        "whats": "what's",
        "whatve": "what've",
        "whens": "when's",
        "whered": "where'd",
        "wheres": "where's",
        "whereve": "where've",
        "whod": "who'd",
        "whod've": "who'd've",
        "who'dve": "who'd've",
        "wholl": "who'll",
        "whos": "who's",
        "whove": "who've",
        "whyll": "why'll",
        "whyre": "why're",
        "whys": "why's",
        "wont": "won't",
        "wouldve": "would've",
        "wouldnt": "wouldn't",
        "wouldnt've": "wouldn't've",
        "wouldn'tve": "wouldn't've",
        "yall": "y'all",
        "yall'll": "y'all'll",
        "y'allll": "y'all'll",
        "yall'd've": "y'all'd've",
        "y'alld've": "y'all'd've",
        "y'all'dve": "y'all'd've",
        "youd": "you'd",
        "youd've": "you'd've",
        "you'dve": "you'd've",
        "youll": "you'll",
        "youre": "you're",
        "youve": "you've",
    }
)


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

    Args:
        text: the answer.
        has_words_apart: begin with ``words_apart``; VQAv2's script does not.
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
    any other mark becomes a blank. Full stops are removed unless a digit follows.

    Args:
        text: any text.
        full_stops: how many full stops are removed, from the left; 0 for all.
        comma_in_number: finds a number with a comma.
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
