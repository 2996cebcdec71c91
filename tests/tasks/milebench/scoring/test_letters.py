from __future__ import annotations

from lmms_eval.tasks.milebench.scoring.fixed_choice import (
    fixed_letter,
    fixed_letters,
    official_letter,
    official_letters,
)


def test_the_evaluators_letters_run_past_the_alphabet() -> None:
    found = [official_letter(index) for index in (0, 25, 26, 51, 52, 77, 78, 84)]
    assert found == ["A", "Z", "AA", "AZ", "BA", "BZ", "B[", "Ba"]


def test_ours_do_not() -> None:
    assert [fixed_letter(index) for index in (0, 25, 26, 77, 78, 701, 702)] == ["A", "Z", "AA", "BZ", "CA", "ZZ", "AAA"]
    assert len(fixed_letters(1000)) == 1000


def test_both_agree_as_far_as_the_evaluators_are_letters() -> None:
    assert official_letters(78) == tuple(fixed_letters(78))
