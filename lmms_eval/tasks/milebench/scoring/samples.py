"""Scores one answer: a :class:`SampleScore`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.tasks.milebench.scoring import fixed_choice
from lmms_eval.tasks.milebench.scoring.model import DatasetFacts, SampleScore, image_level

MARKS = ';/[]"{}()=+\\_-><@`,?!'
"""The 21 marks that are deleted or replaced by a blank."""
OFFICIAL_STOPS = 32
"""The most full stops that the reference deletes (a flag lands in the place of the count)."""

_TOUCHED = re.compile(r"""[\n\t.;/\[\]"{}()=+\\_\-><@`,?!]""")
_THOUSANDS = re.compile(r"\d,\d")
_COMMA_OF_NUMBER = re.compile(r"(?<=\d),(?=\d)")
_STOP = re.compile(r"\.(?!\d)")


def normalise(text: str) -> str:
    """Normalise ``text`` as the reference does: remove marks and full stops, and lower the case.

    A mark is deleted wherever it occurs if it is next to a blank anywhere, or if the text holds a thousands
    separator anywhere; else it becomes a blank. Only the first 32 full stops that no digit follows are deleted.
    """
    if _TOUCHED.search(text) is None:
        return _trim(text.strip())
    text = text.replace("\n", " ").replace("\t", " ").strip()
    cleaned = text.translate(_replacements(text, deletes_all=_THOUSANDS.search(text) is not None))
    return _trim(_STOP.sub("", cleaned, count=OFFICIAL_STOPS))


def normalise_fixed(text: str) -> str:
    """Normalise as :func:`normalise`, but remove only the comma of a thousands separator, and all full stops."""
    text = _COMMA_OF_NUMBER.sub("", text.replace("\n", " ").replace("\t", " ").strip())
    return _trim(_STOP.sub("", text.translate(_replacements(text, deletes_all=False))))


def _replacements(text: str, deletes_all: bool) -> dict[int, str]:
    """Replacement of each mark that the text holds."""
    return {
        ord(mark): "" if deletes_all or f"{mark} " in text or f" {mark}" in text else " "
        for mark in MARKS
        if mark in text
    }


def _trim(text: str) -> str:
    return text.strip("'").strip('"').strip().lower()


EMPTY_COUNTS_AS = "C"
_LONGEST_BARE_LETTER = 2
_ESCAPED = frozenset(r"\.^$*+?{}[]|()")
"""Characters that the reference escapes in options before comparing, so that such options never match by text."""


def read_letter(text: str, options: Sequence[str]) -> tuple[str, str]:
    """Select letters (not always one in use) as the reference does, and return them and the step that read them.

    ``text`` and ``options`` are normalised. Steps: ``empty``, ``letter and text``, ``text``, ``bare letter``,
    ``letters collected``.
    """
    letters = fixed_choice.official_letters(len(options))
    if not text:
        return EMPTY_COUNTS_AS, "empty"
    labelled = [normalise(f"{letter} {option}") for letter, option in zip(letters, options, strict=True)]
    found = leftmost(text, labelled)
    if found is not None:
        return labelled[found][:1].upper(), "letter and text"
    bare = [normalise(option).replace(" ", "") for option in options]  # twice, as in the reference
    found = leftmost(text.replace(" ", ""), bare)
    if found is not None and _ESCAPED.isdisjoint(bare[found]):
        return letters[found].upper(), "text"
    if len(text) <= _LONGEST_BARE_LETTER and text.upper() in letters:
        return text.upper(), "bare letter"
    capitals = {character: character.upper() for character in set(text)}
    used = frozenset(letters)
    collected = text.translate({ord(one): upper if upper in used else "" for one, upper in capitals.items()})
    return collected, "letters collected"


def leftmost(text: str, pieces: Sequence[str]) -> int | None:
    """Return the piece that occurs first in ``text`` (the earlier of two at one place); ``None`` if none occurs."""
    best, place = None, len(text) + 1
    for index in fixed_choice.possible(text, pieces):
        piece = pieces[index]
        at = text.find(piece, 0, place - 1 + len(piece))  # only occurrences further left matter
        if at >= 0:
            best, place = index, at
            if at == 0:
                break
    return best


EPSILON = 1e-8


def split_sentences(text: str) -> list[list[str]]:
    """Split a text into the words of its distinct sentences. Blanks between two full stops are an empty sentence."""
    return [" ".join(piece.split()).split(" ") for piece in dict.fromkeys(text.split(".")) if piece]


def distinct_word_rouge(prediction: str, gold: str) -> float | None:
    """The package's F of two normalised texts; ``None`` if one of them has no sentence (the package raises).

    The words of the common subsequences of all pairs of sentences form one set, which is related to the sets of
    words of either text. A perfect match is 0.999999995.
    """
    predicted, wanted = split_sentences(prediction), split_sentences(gold)
    if not predicted or not wanted:
        return None
    gold_words = {word for sentence in wanted for word in sentence}
    predicted_words = {word for sentence in predicted for word in sentence}
    shared = gold_words & predicted_words
    relevant = {tuple(word for word in sentence if word in shared) for sentence in predicted} - {()}
    union: set[str] = set()
    for sentence in wanted:
        for other in relevant:
            if len(union) == len(shared):
                break  # no more words can come
            union |= common_words(sentence, other)
    recall, precision = len(union) / len(gold_words), len(union) / len(predicted_words)
    return 2.0 * ((precision * recall) / (precision + recall + EPSILON))


def sequence_rouge(prediction: str, gold: str) -> float:
    """F1 of the longest common subsequence of words (C.-Y. Lin, "ROUGE", 2004); 0 if nothing is common."""
    predicted, wanted = prediction.split(), gold.split()
    masks = _masks(wanted)
    row = full = (1 << len(wanted)) - 1
    for word in predicted:
        if word in masks:
            row = _next(row, masks[word]) & full
    length = len(wanted) - row.bit_count()
    return 2.0 * length / (len(predicted) + len(wanted)) if length else 0.0


def common_words(gold: Sequence[str], prediction: Sequence[str]) -> set[str]:
    """The words of the common subsequence that the package's back-trace finds.

    From the ends of both: equal words are taken; otherwise a step back in ``gold`` if that leaves strictly more in
    common than a step back in ``prediction``, else a step back in ``prediction``. Words of ``prediction`` that are
    not in ``gold`` change nothing and can be left out.
    """
    masks = _masks(gold)
    full = (1 << len(gold)) - 1
    rows = [full]
    for word in prediction:
        rows.append(_next(rows[-1], masks.get(word, 0)) & full)
    found: set[str] = set()
    i, j = len(gold), len(prediction)
    while i and j:
        if gold[i - 1] == prediction[j - 1]:
            found.add(gold[i - 1])
            i, j = i - 1, j - 1
        elif _length(rows[j], i - 1) > _length(rows[j - 1], i):
            i -= 1
        else:
            j -= 1
    return found


def _masks(words: Sequence[str]) -> Mapping[str, int]:
    """Return the places of each word, as bits."""
    masks: dict[str, int] = {}
    for index, word in enumerate(words):
        masks[word] = masks.get(word, 0) | 1 << index
    return masks


def _next(row: int, mask: int) -> int:
    matched = row & mask
    return (row + matched) | (row - matched)


def _length(row: int, n_words: int) -> int:
    """Length of the longest common subsequence with the first ``n_words`` gold words."""
    return n_words - (row & ((1 << n_words) - 1)).bit_count()


FROM_ANNOTATION: Final = object()
"""Selects the annotation's ``response`` as reference answer."""
NO_SENTENCE = "no sentence is left of the prediction: scored 0"


def score_sample(
    facts: DatasetFacts, sample: Mapping[str, Any], prediction: Any, gold: Any = FROM_ANNOTATION
) -> SampleScore:
    """Judge one answer by the ``official`` and the ``fixed`` rules.

    Args:
        facts: the data set's name and question type, which choose the rule.
        sample: an entry of the annotation's ``data`` (``sample_id``, ``response``, ``task_instance`` with
            ``images_path`` and, for choice questions, ``choice_list``).
        prediction: the model's text. Anything else (``None``, a number) fails the sample.
        gold: the reference answer by the official rules, which take it from the prediction file. The fixed rules
            take the annotation's ``response``, if there is one.

    Returns:
        Scores, or an ``error`` if the sample *failed*: the answer is not a text, or the reference answer is missing,
        empty (ROUGE) or not one of the options.

    Raises:
        DataError: the data set's question type is unknown.
    """
    instance = sample.get("task_instance") or {}
    n_images = len(instance.get("images_path") or ())
    blank = SampleScore(str(sample.get("sample_id")), facts.metric, image_level(n_images), n_images)
    response = sample.get("response")
    annotated = None if response is None else str(response)
    gold = annotated if gold is FROM_ANNOTATION else gold
    if not isinstance(prediction, str):
        return replace(blank, error=f"the prediction is {_kind(prediction)}, not a text")
    if not isinstance(gold, str):
        return replace(blank, error=f"the reference answer is {_kind(gold)}, not a text")
    case = _Case(prediction, gold, gold if annotated is None else annotated, normalise(prediction), normalise(gold))
    blank = replace(blank, is_empty=not case.text)
    if facts.rule == "choice":
        return _choice(blank, case, instance.get("choice_list"))
    if facts.rule == "rouge":
        return _rouge(blank, case)
    text, wanted = normalise_fixed(prediction), normalise_fixed(case.fixed_gold)
    if facts.rule == "token":
        score, fixed = case.wanted in case.text.split(), wanted in text.split()
    else:
        score, fixed = case.wanted in case.text, bool(wanted) and fixed_choice.occurs(wanted, text)
    return replace(blank, score=int(score), fixed=int(fixed), step=facts.rule, fixed_step=facts.rule)


class _Case(Struct, frozen=True):
    prediction: str
    gold: str
    fixed_gold: str
    text: str
    """The prediction, normalised."""
    wanted: str
    """The gold answer, normalised."""


def _kind(value: Any) -> str:
    return "null" if value is None else f"a {type(value).__name__}"


def _choice(blank: SampleScore, case: _Case, choice_list: Sequence[Any] | None) -> SampleScore:
    if choice_list is None:
        return replace(blank, error="the annotation has no choice_list")
    raw = [str(option) for option in choice_list]
    options = tuple(map(normalise, raw))
    if case.wanted not in options:
        return replace(blank, error=f"the reference answer {case.gold[:80]!r} is not one of the {len(raw)} options")
    extracted, step = read_letter(case.text, options)
    right = fixed_choice.official_letters(len(options))[options.index(case.wanted)]
    chosen, fixed_step = fixed_choice.read_choice(case.prediction, raw) if case.text else fixed_choice.NO_CHOICE
    # every option that equals the reference answer is right; by normalised text if none equals it as written
    as_written, cleaned = fixed_choice.plain(case.fixed_gold), normalise(case.fixed_gold)
    same = [index for index, option in enumerate(raw) if fixed_choice.plain(option) == as_written]
    alike = [index for index, option in enumerate(options) if option == cleaned]
    return replace(
        blank,
        score=int(extracted == right),
        step=step,
        extracted=extracted,
        fixed=int(chosen in (same or alike)),
        fixed_step=fixed_step if case.text else "empty",
        fixed_extracted=None if chosen is None else fixed_choice.fixed_letter(chosen),
        normalised=(case.text, case.wanted, options),
    )


def _rouge(blank: SampleScore, case: _Case) -> SampleScore:
    if not case.wanted:
        return replace(blank, error=f"the reference answer {case.gold[:80]!r} is empty after normalisation")
    text, wanted = normalise_fixed(case.prediction), normalise_fixed(case.fixed_gold)
    pairs = (case.text, case.wanted), (text, wanted)
    official, fixed = (distinct_word_rouge(*pair) if all(pair) else 0 for pair in pairs)
    return replace(
        blank,
        score=official or 0 if not case.text else official if official is not None else 0.0,
        fixed=fixed if fixed is not None else 0.0,
        sequence=sequence_rouge(text, wanted),
        step="rouge-l" if case.text else "empty",
        fixed_step="rouge-l" if text else "empty",
        note=NO_SENTENCE if case.text and official is None else "",
    )
