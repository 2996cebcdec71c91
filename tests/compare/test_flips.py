from __future__ import annotations

import math

import numpy as np
import pytest

from lmms_eval.compare.flips import flip_lines, flips_of
from lmms_eval.compare.matching import match_runs
from lmms_eval.compare.runs import DocumentTexts
from lmms_eval.compare.verdicts import CompareOptions
from tests.compare.runs import column, run, task


def test_the_rarer_direction_and_the_greater_change_come_first() -> None:
    first = [1, 1, 1, 0, 0.5, 1, 1, 1]
    second = [0, 0, 0, 1, 0.0, 1, 1, 1]
    pairs = match_runs([run("a", task(first)), run("b", task(second))], CompareOptions())
    found = [(flip.id, flip.better, flip.surprise) for flip in flips_of(pairs)]
    assert found == [
        ("3", "second", 3.0),  # 1 of 8 changed so
        ("0", "first", round(-math.log2(3 / 8), 4)),  # 3 of 8 by as much
        ("1", "first", round(-math.log2(3 / 8), 4)),
        ("2", "first", round(-math.log2(3 / 8), 4)),
        ("4", "first", 1.0),  # 4 of 8 by at least 0.5
    ]


def test_a_document_that_all_others_get_right_is_more_surprising() -> None:
    names = "abcdef"
    scores = {name: [1.0, 1.0, 1.0, 0.0] for name in names}
    scores["b"] = [0.0, 0.0, 1.0, 0.0]
    for name in "cd":
        scores[name] = [1.0, 0.0, 1.0, 0.0]
    pairs = match_runs([run(name, task([*scores[name]])) for name in names], CompareOptions(reference="b"))
    flips = [flip for flip in flips_of(pairs[:1])]
    assert [flip.id for flip in flips] == ["0", "1"]  # with the two runs of the pair alone they are alike
    pairs = match_runs([run(name, task([*scores[name]])) for name in names], CompareOptions())
    flips = [flip for flip in flips_of(pairs) if (flip.first.run, flip.second.run) == ("a", "b")]
    assert [flip.id for flip in flips] == ["0", "1"]
    # four others: none agrees with b about 0, two agree with each side about 1
    assert flips[0].surprise == pytest.approx(1 - math.log2(1 / 6), abs=1e-4)
    assert flips[1].surprise == pytest.approx(1 - math.log2(3 / 6), abs=1e-4)
    assert flips[0].others == {"c": 1.0, "d": 1.0, "e": 1.0, "f": 1.0}


def test_a_flip_has_what_both_runs_hold_of_the_document() -> None:
    def answers(text: str):
        return lambda row: DocumentTexts(f"{text} {row}", "gold")

    first = task([1.0, 0.0], hashes=["h0", "h1"], answer=answers("said"))
    second = task([1.0, 1.0], answer=lambda row: None)
    (flip,) = flips_of(match_runs([run("a", first), run("b", second)], CompareOptions()))
    assert (flip.id, flip.hash, flip.target, flip.better) == ("1", "h1", "gold", "second")
    assert (flip.first.answer, flip.first.score, flip.second.answer, flip.second.score) == ("said 1", 0.0, None, 1.0)


def test_lower_may_be_better_and_what_has_no_score_does_not_flip() -> None:
    facts = {"higher_is_better": False, "score_range": None}
    first = task([column([3.0, 1.0, None, np.inf], **facts)])
    second = task([column([1.0, 1.0, 1.0, 1.0], **facts)])
    (flip,) = flips_of(match_runs([run("a", first), run("b", second)], CompareOptions()))
    assert (flip.id, flip.better) == ("0", "second")


def test_lines_name_the_first_ones() -> None:
    pairs = match_runs([run("a", task([1, 1, 1, 0, 1])), run("b", task([0, 0, 0, 1, 1]))], CompareOptions())
    assert list(flip_lines(pairs, 2)) == [
        "quiz acc: 4 documents changed; largest changes (a vs b): 3 (second better), 0 (first better)"
    ]
