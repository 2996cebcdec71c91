"""One answer → one :class:`SampleScore`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from lmms_eval.tasks.milebench.scoring import rouge
from lmms_eval.tasks.milebench.scoring.choice import read_letter
from lmms_eval.tasks.milebench.scoring.fixed_choice import NO_CHOICE, occurs, plain, read_choice
from lmms_eval.tasks.milebench.scoring.letters import fixed_letter, official_letters
from lmms_eval.tasks.milebench.scoring.levels import image_level
from lmms_eval.tasks.milebench.scoring.model import DatasetFacts, Normalised, SampleScore
from lmms_eval.tasks.milebench.scoring.normalise import normalise, normalise_fixed

FROM_ANNOTATION: Final = object()
"""Stands for the annotation's ``response`` as reference answer."""
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
        Scores, or an ``error`` if the sample *failed*: the answer is no text, or the reference answer is missing,
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
    return _token(blank, case) if facts.rule == "token" else _substring(blank, case)


@dataclass(frozen=True, slots=True)
class _Case:
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
        return replace(blank, error=f"the reference answer {case.gold[:80]!r} is none of the {len(raw)} options")
    reading = read_letter(case.text, options)
    right = official_letters(len(options))[options.index(case.wanted)]
    choice = read_choice(case.prediction, raw) if case.text else NO_CHOICE
    return replace(
        blank,
        score=int(reading.extracted == right),
        step=reading.step,
        extracted=reading.extracted,
        fixed=int(choice.index is not None and choice.index in _right_options(case.fixed_gold, raw, options)),
        fixed_step=choice.step if case.text else "empty",
        fixed_extracted=None if choice.index is None else fixed_letter(choice.index),
        normalised=Normalised(case.text, case.wanted, options),
    )


def _right_options(gold: str, raw: Sequence[str], normalised: Sequence[str]) -> frozenset[int]:
    """Every option that equals the reference answer; by normalised text if none equals it as written."""
    wanted = plain(gold)
    same = frozenset(index for index, option in enumerate(raw) if plain(option) == wanted)
    if same:
        return same
    cleaned = normalise(gold)
    return frozenset(index for index, option in enumerate(normalised) if option == cleaned)


def _token(blank: SampleScore, case: _Case) -> SampleScore:
    score = int(case.wanted in case.text.split())
    fixed = int(normalise_fixed(case.fixed_gold) in normalise_fixed(case.prediction).split())
    return replace(blank, score=score, fixed=fixed, step="token", fixed_step="token")


def _substring(blank: SampleScore, case: _Case) -> SampleScore:
    wanted = normalise_fixed(case.fixed_gold)
    fixed = int(bool(wanted) and occurs(wanted, normalise_fixed(case.prediction)))
    return replace(blank, score=int(case.wanted in case.text), fixed=fixed, step="substring", fixed_step="substring")


def _rouge(blank: SampleScore, case: _Case) -> SampleScore:
    if not case.wanted:
        return replace(blank, error=f"the reference answer {case.gold[:80]!r} is empty after normalisation")
    text, wanted = normalise_fixed(case.prediction), normalise_fixed(case.fixed_gold)
    official = _distinct(case.text, case.wanted)
    fixed = official if (text, wanted) == (case.text, case.wanted) else _distinct(text, wanted)
    return replace(
        blank,
        score=official or 0 if not case.text else official if official is not None else 0.0,
        fixed=fixed if fixed is not None else 0.0,
        sequence=rouge.sequence_rouge(text, wanted),
        step="rouge-l" if case.text else "empty",
        fixed_step="rouge-l" if text else "empty",
        note=NO_SENTENCE if case.text and official is None else "",
    )


def _distinct(text: str, wanted: str) -> float | int | None:
    return rouge.distinct_word_rouge(text, wanted) if text and wanted else 0
