"""Constraints on words: their occurrence, position and frequency, their number, and the first letters of lines."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from lmms_eval.tasks._task_utils.linguistic import Linguistics
from lmms_eval.tasks.megabench.conversions.containers import str_to_list
from lmms_eval.tasks.megabench.conversions.literals import ConversionError, read_literal

MAX_CHARS = 50_000
"""Longer texts are not searched for words: splitting them into sentences and words takes seconds."""
MAX_SENTENCES = 2_500
"""Different sentences of one text; each costs some 0.2 ms."""

_WORD = re.compile(r"\w+")
_BOLD = "**"
_BOUNDS: Mapping[str, Callable[[int, int], bool]] = {">": operator.gt, "<": operator.lt}


def parse_constraint(name: str, value: str) -> dict[str, Any]:
    """Read a constraint such as ``contain1##position`` with the value ``[boat, vessel]##2``.

    Returns the values by lower-case names without numbers: the text that lists the words as ``contain`` or
    ``contain_only``, and ``position_only``, ``position`` and ``times``, as far as they are given. Raises
    ``ConversionError`` if the parts do not match.
    """
    names = [part.rstrip("0123456789").lower() for part in name.split("##")]
    values = [part.strip().strip('"') for part in value.split("##")]
    if len(names) != len(values):
        raise ConversionError(f"constraint {name!r}: {len(names)} names, but {len(values)} values")
    parts: dict[str, Any] = {
        part: int(text) if re.fullmatch("[0-9]+", text) else text for part, text in zip(names, values, strict=True)
    }
    if not parts.keys() & {"contain", "contain_only"}:
        raise ConversionError(f"constraint {name!r} is neither contain nor contain_only")
    return parts


def contain(text: str, name: str, value: str, linguistics: Callable[[], Linguistics]) -> bool:
    """Check that the words of a constraint occur in the text, at the stated sentences and frequencies.

    Raises:
        ConversionError: an unreadable constraint, or a text over the limits of this module.
        NotEvaluated: ``linguistics`` has no data.
    """
    stated = parse_constraint(name, value)
    if is_only := "contain_only" in stated:  # its lists are alternatives
        groups = list(read_literal(_WORD.sub(r'"\g<0>"', stated["contain_only"])))
    else:
        groups = [str_to_list(stated["contain"])]
    text = text.replace(_BOLD, "")
    if len(text) > MAX_CHARS:
        raise ConversionError(f"{len(text)} characters are too many to be searched for words")
    language = linguistics()
    sentences = _lemmatised_sentences(text, language)
    hits = []
    for group in groups:
        phrases = [_lemmatised(phrase, language) for phrase in group]
        # the sentences, from 1, that hold a phrase, also inside a word, with its frequency
        counts = [(number, one.count(phrase)) for phrase in phrases for number, one in enumerate(sentences, start=1)]
        if occurrences := [(number, count) for number, count in counts if count]:
            hits.append(occurrences)
    return bool(hits) and not (is_only and len(hits) > 1) and _within_limits(hits[0], stated)


def _within_limits(occurrences: list[tuple[int, int]], limits: Mapping[str, Any]) -> bool:
    """Check the limits. ``position_only`` decides alone, and ``times`` overrides ``position``, as officially."""
    places = [place for place, _ in occurrences]
    if "position_only" in limits:
        return places == [limits["position_only"]]
    if "times" in limits:
        return bool(sum(count for _, count in occurrences) == limits["times"])
    return "position" not in limits or limits["position"] in places


@functools.lru_cache(maxsize=4)
def _lemmatised_sentences(text: str, language: Linguistics) -> list[str]:
    """Lemmatise the sentences of a text. The last ones are cached, since each constraint of a reply needs them."""
    sentences = language.sentences(text)
    different = set(sentences)
    if len(different) > MAX_SENTENCES:
        raise ConversionError(f"{len(different)} sentences are too many to be searched for words")
    lemmatised = {sentence: _lemmatised(sentence, language) for sentence in different}
    return [lemmatised[sentence] for sentence in sentences]


def _lemmatised(text: str, language: Linguistics) -> str:
    return " ".join(map(language.lemmatizer.lemma, language.words(text.lower())))


def length(text: str, value: str) -> bool:
    """Check that the number of words is strictly above (``>5``) or below (``<5``) a bound; false without a number.

    Raises ``ConversionError`` for any other relation.
    """
    try:
        bound = int(value[1:])
    except ValueError:
        return False
    if value[0] not in _BOUNDS:
        raise ConversionError(f"{value!r} is no bound of a length: write >N or <N")
    return _BOUNDS[value[0]](sum(1 for _ in _WORD.finditer(text)), bound)


def acrostic(text: str, letters: str, *, alliteration: bool) -> bool:
    """Check that each line begins with its letter; a blank represents an empty line.

    With ``alliteration`` every word must begin with the letter of its line; raises ``IndexError`` for a doubled blank.
    """
    lines = [line.strip() for line in text.replace(_BOLD, "").strip().lower().split("\n")]
    if len(lines) != len(letters):
        return False
    for line, letter in zip(lines, letters.lower(), strict=False):
        if letter == " " or not line:
            if letter != " " or line:
                return False
        elif not all(word[0] == letter for word in (line.split(" ") if alliteration else [line])):
            return False
    return True
