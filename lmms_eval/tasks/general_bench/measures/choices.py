"""Comparison of free answers with classes, options, numbers and yes/no.

The reference code scores neither pictures nor point clouds, so these rules are our own. If the classes are known, an
answer that lists them matches none. Otherwise it matches only if it neither gives alternatives nor lists many entries.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.tasks.milebench.scoring.fixed_choice import occurs, read_choice

_EDGES = string.whitespace + ".,;:!?'\"`*()[]{}<>-_" + "“”‘’«»…–—。，、！？；：（）"
_JOINS = re.compile(r"[\s_\-‐-―]+")
_LETTER = re.compile(r"\(?([A-Za-z])[.):]?")
_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
_DIGITS = re.compile(r"(?<![\w.])(?<!\d,)[+-]?\d[\d.,]*+(?!\w)")
"""A run of characters with one number, or several between commas. No run begins inside another one."""
_MARK = re.compile(r"(?:^|(?<=\s))\(?([A-Z])[.):]\s+")
_POLES = (("yes", "no"), ("true", "false"))
_WORD = re.compile(r"[a-z]+")
_OPTION_KEYS = ("options", "choices", "candidates")
MAX_WORDS_AROUND = 30
"""Most words of an answer in addition to the reference if it is to name one class."""
_MAX_OPTIONS = 26
_MAX_DIGITS = 30
_ALTERNATIVES = re.compile(r"\bor\b|[/|]", re.IGNORECASE)
_ENTRIES = re.compile(r"[,;\n、，；]|\band\b", re.IGNORECASE)
_ARTICLE = re.compile(r"(?:(?:either|a|an|the) )*")
_LISTED, _SHORT = 4, 3
"""A list of classes has at least so many entries of so many words at most. Anything less is a class and a remark."""


def choice_match(
    prediction: str, references: Sequence[str], options: Sequence[str] = (), classes: Sequence[str] = ()
) -> bool:
    """Return whether an answer agrees with a reference by the first rule that applies to that reference.

    1. The texts are equal without case, outer punctuation, and the difference of spaces, hyphens and underscores.
    2. Of several ``options``, the reference is one (by letter or text): the answer names the same
       (``milebench.scoring.fixed_choice``: a stated letter, a leading or single one, else the longest option found).
    3. The reference is a letter: the answer names it in one of the first three ways.
    4. The reference is yes, no, true or false: the first of the pair in the answer is it.
    5. The reference is a number: it is the only number in the answer.
    6. The reference is in the answer between word borders, with at most 30 other words, and is no entry of a
       list of alternatives there; if it is one of ``classes``, the answer names no other of them.

    Args:
        prediction: the answer.
        references: those that are right.
        options: of this question, in the order of their letters.
        classes: among which all questions of the task choose, if they are known.
    """
    return any(_agrees(prediction, reference, options, classes) for reference in references)


def _agrees(prediction: str, reference: str, options: Sequence[str], classes: Sequence[str]) -> bool:
    answer, wanted = fold_text(prediction), fold_text(reference)
    if not wanted:
        return not answer and prediction.strip() == reference.strip()
    if answer == wanted and _signed(prediction) == _signed(reference):
        return True
    targets = _targets(reference, options)
    if targets:
        return read_choice(prediction, options)[0] in targets
    if letter := _LETTER.fullmatch(reference.strip()):
        return read_choice(prediction, [""] * _MAX_OPTIONS)[0] == ord(letter.group(1).upper()) - ord("A")
    for pair in _POLES:
        if wanted in pair:
            return next((word for word in _WORD.findall(answer) if word in pair), None) == wanted
    if _NUMBER.fullmatch(reference.strip()):
        return _numbers(prediction) == _numbers(reference)
    if len(answer.split()) > len(wanted.split()) + MAX_WORDS_AROUND or not occurs(wanted, answer):
        return False
    known = {fold_text(one) for one in classes}
    if wanted not in known:
        return not _is_entry(prediction, wanted)
    found = [one for one in known if one and one in answer and occurs(one, answer)]
    # a class within the name of another that is there does not count
    return {one for one in found if not any(one != other and occurs(one, other) for other in found)} == {wanted}


def _is_entry(prediction: str, wanted: str) -> bool:
    """Return whether an answer gives a text as one of several: next to "or" or a slash, or in a long list."""
    parts = [] if _ALTERNATIVES.search(wanted) else _entries(_ALTERNATIVES, prediction)
    before, behind = parts[:-1], parts[1:]
    if any(f" {part}".endswith(f" {wanted}") for part in before) or any(
        f"{part} ".startswith(f"{wanted} ") for part in behind
    ):
        return True
    listed = [entry for entry in _entries(_ENTRIES, prediction) if len(entry.split()) <= _SHORT]
    return len(listed) >= _LISTED and wanted in listed


def _entries(sign: re.Pattern[str], text: str) -> list[str]:
    """Split the answer at the separators into folded parts without articles."""
    return [_ARTICLE.sub("", entry, count=1) for part in sign.split(text) if (entry := fold_text(part))]


def fold_text(text: str) -> str:
    """Fold case, and drop outer punctuation and the difference of spaces, hyphens and underscores."""
    normal = unicodedata.normalize("NFKC", text).casefold()
    return _JOINS.sub(" ", normal.strip(_EDGES)).strip()


def first_answer_match(prediction: str, references: Sequence[str]) -> bool:
    """Return whether an answer equals a reference, ignoring case, white space and outer punctuation."""
    answer = _light(prediction)
    return any(answer == _light(reference) for reference in references)


def _light(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().strip(_EDGES).split())


def _signed(text: str) -> bool:
    """Return whether a text is a number with a minus sign, which is not outer punctuation."""
    return bool(re.match(r"\s*[-−]\s*[\d.]", text))


def _numbers(text: str) -> frozenset[float]:
    found: list[str] = []
    for match in _DIGITS.finditer(text.replace("−", "-")):
        run = match.group().rstrip(".,")
        found += [run] if _NUMBER.fullmatch(run) else filter(_NUMBER.fullmatch, run.split(","))
    digits = (number.replace(",", "") for number in found)
    return frozenset(float(number) for number in digits if len(number) <= _MAX_DIGITS)


def _targets(reference: str, options: Sequence[str]) -> frozenset[int]:
    """Return the options that a reference names: the one of a letter, else those of its text."""
    if len(options) < 2:
        return frozenset()
    wanted = fold_text(reference)
    same = frozenset(index for index, option in enumerate(options) if fold_text(option) == wanted)
    letter = _LETTER.fullmatch(reference.strip())
    if same or not letter:
        return same
    index = ord(letter.group(1).upper()) - ord("A")
    return frozenset({index}) if index < len(options) else frozenset()


def options_of(raw: Mapping[str, Any], prompt: str) -> list[str]:
    """Return the options of an item: a list under ``options``, ``choices`` or ``candidates``, else ``A. ... B. ...`` in
    the prompt, else an empty list.
    """
    inner = raw.get("input")
    for place in (inner if isinstance(inner, Mapping) else {}, raw):
        for key in _OPTION_KEYS:
            listed = place.get(key)
            if isinstance(listed, Mapping):
                listed = list(listed.values())
            if isinstance(listed, list) and listed and all(isinstance(one, str) for one in listed):
                return [_without_letter(one, index) for index, one in enumerate(listed[:_MAX_OPTIONS])]
    run: list[re.Match[str]] = []
    for mark in _MARK.finditer(prompt):
        if mark.group(1) == chr(ord("A") + len(run)):
            run.append(mark)
    if len(run) < 2:
        return []
    ends = [*(mark.start() for mark in run[1:]), len(prompt)]
    texts = [prompt[mark.end() : end].strip() for mark, end in zip(run, ends, strict=True)]
    return [text.split("\n")[0].rstrip(" ,;") for text in texts]


def _without_letter(option: str, index: int) -> str:
    mark = _MARK.match(option.strip())
    return option.strip()[mark.end() :] if mark and mark.group(1) == chr(ord("A") + index) else option.strip()
