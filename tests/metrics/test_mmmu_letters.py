from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.metrics.mmmu import audio_letter, egoschema_letter, mmmu_letter
from lmms_eval.utils.answer_reading import RUN_SEED, scoring_notes
from tests.cases import for_each

OPTIONS = {"A": "a red cup", "B": "a blue cup", "C": "a green cup", "D": "a dark blue cup"}
Rule = Callable[[str, object], str]


def by_mmmu(answer: str, document: object) -> str:
    return mmmu_letter(answer, OPTIONS, document)


def by_egoschema(answer: str, document: object) -> str:
    return egoschema_letter(answer, OPTIONS, document)


def by_audio(answer: str, document: object) -> str:
    return audio_letter(answer, tuple(OPTIONS), document)


RULES = (by_mmmu, by_egoschema, by_audio)


@for_each(
    ("answer", "mmmu", "egoschema", "audio"),
    [
        ("B", "B", "B", "B"),
        ("...B!", "B", "B", "B"),
        ("(B) or (A)", "A", "B", "A"),
        ("(B) or A", "B", "B", "B"),
        ("B or C", "C", "B", "C"),
        ("Plan B. C. x", "B", "B", "B"),
        ("xB or yD z", "B", "B", None),
        ("I would say that it is a blue cup", "B", "B", None),
        ("a blue cup", None, None, None),
        ("not a red cup but I say a blue cup", "B", "A", None),
        ("", None, None, None),
        ("b", None, None, None),
        ("I'm sorry, but I can't help with that.", None, None, None),
    ],
)
def test_the_rules_side_by_side(answer: str, mmmu: str | None, egoschema: str | None, audio: str | None) -> None:
    for rule, wanted in zip(RULES, (mmmu, egoschema, audio), strict=True):
        with scoring_notes() as chance:
            found = rule(answer, 1)
        assert (None if chance.drew else found) == wanted, rule.__name__


@for_each("rule", RULES)
def test_letters_are_drawn_by_seed_and_document(rule: Rule) -> None:
    drawn = [rule("no idea", number) for number in range(100)]
    assert drawn == [rule("no idea", number) for number in range(100)]
    assert set(drawn) == set(OPTIONS)
    token = RUN_SEED.set(7)
    try:
        assert drawn != [rule("no idea", number) for number in range(100)]
    finally:
        RUN_SEED.reset(token)


@given(st.text(), st.sampled_from(RULES))
def test_any_answer_gives_a_letter(answer: str, rule: Rule) -> None:
    assert rule(answer, 1) in OPTIONS


@for_each("rule", RULES)
def test_long_answers_are_read(rule: Rule) -> None:
    assert rule("x " * 50_000 + "(C)", 1) == "C"


def test_egoschema_does_not_know_an_option_without_the_full_stop_that_the_answer_loses() -> None:
    with scoring_notes() as chance:
        egoschema_letter("The man washes all of the cups.", {"A": "The man washes all of the cups."}, 1)
    assert chance.drew


@for_each("rule", [mmmu_letter, egoschema_letter])
def test_without_options_nothing_can_be_drawn(rule: Callable[..., str]) -> None:
    with pytest.raises(IndexError):
        rule("no idea", {}, 1)
