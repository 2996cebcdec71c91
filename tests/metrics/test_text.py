from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import NothingToCompareError, UsageError
from lmms_eval.metrics import text


@given(st.text(max_size=12), st.text(max_size=12), st.text(max_size=12))
def test_levenshtein_is_a_distance(a: str, b: str, c: str) -> None:
    assert text.levenshtein_distance(a, a) == 0
    assert text.levenshtein_distance(a, b) == text.levenshtein_distance(b, a)
    assert text.levenshtein_distance(a, c) <= text.levenshtein_distance(a, b) + text.levenshtein_distance(b, c)


@given(st.lists(st.text(max_size=10), min_size=1, max_size=4), st.text(max_size=10))
def test_anls_is_a_share_and_takes_the_nearest_reference(references: list[str], answer: str) -> None:
    score = text.anls(references, [answer])["anls"]
    assert 0 <= score <= 1
    assert score == max(text.anls([reference], [answer])["anls"] for reference in references)


def test_anls_ignores_case_and_runs_of_white_space() -> None:
    assert text.anls(["Dark  Blue"], ["dark blue"])["anls"] == 1
    assert text.anls(["abcd"], ["abxx"])["anls"] == 0.5
    assert text.anls(["abcd"], ["abxx"], thresh_hold=0.6)["anls"] == 0
    with pytest.raises(UsageError, match="at least one"):
        text.anls([], ["a"])


def test_anls_measures_lengths_in_upper_case() -> None:
    assert text.anls(["ß"], ["x"])["anls"] == 0.5
    for empty in (([], ["a"]), (["a"], [])):
        with pytest.raises(NothingToCompareError) as caught:
            text.anls(*empty)
        assert isinstance(caught.value, ValueError) and isinstance(caught.value, IndexError)


def test_levenshtein_takes_any_sequences() -> None:
    assert text.levenshtein_distance(["ab", 1], ["ab"]) == 1
    assert text.levenshtein_distance("ab", ["a", "b"]) == 0


def test_exact_match_options_apply_to_both_sides() -> None:
    assert text.exact_match(["The answer, 7!"], ["answer 7"], regexes_to_ignore=["The "], ignore_punctuation=True) == {
        "exact_match": 1.0
    }
    assert text.exact_match(["A1"], ["a2"], ignore_case=True, ignore_numbers=True) == {"exact_match": 1.0}
    assert text.exact_match(["A"], ["a"]) == {"exact_match": 0.0}
    assert text.exact_match([7], ["7"]) == {"exact_match": 1.0}


def test_exact_match_refuses() -> None:
    with pytest.raises(UsageError, match="1 references for 2"):
        text.exact_match(["a"], ["a", "b"])
    with pytest.raises(UsageError, match="regexes_to_ignore"):
        text.exact_match(["a"], ["a"], regexes_to_ignore=["("])


def test_pairs_for_the_corpus_scores() -> None:
    assert text.text_pair(["a"], ["b"]) == ("a", "b")
    assert text.text_pair(["a", "c"], [["b"]]) == (["a", "c"], "b")
    assert text.label_pair([1], [" 1 "]) == (1, 1)
    assert text.label_pair(["yes"], ["no"]) == ("yes", "no")
    for pair in (text.text_pair, text.label_pair):
        with pytest.raises(UsageError):
            pair(["a"], [])
