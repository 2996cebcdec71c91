from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.megabench.metrics.constraints_verse import (
    MAX_SYLLABLES,
    clean_lines,
    is_line_iambic,
    parse_syllable_ranges,
    phones_for_word,
    rhyming_scheme,
    stresses,
    syllable_totals,
    syllables,
)
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import FUZZ, reply_text

WORDS = ["the", "fire", "cat", "above", "hour", "record", "zzxq", "unhappy", "fiery", "a", "world", "bustles"]
line_of_words = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)


def combinations(line: str) -> set[str]:
    """The stresses of a line for every choice of pronunciations, one by one."""
    choices = [[stresses(phones) for phones in phones_for_word(word)] for word in line.split()]
    return {"".join(chosen) for chosen in itertools.product(*choices)}


@FUZZ
@given(line_of_words)
def test_sums_are_those_of_all_combinations(line: str) -> None:
    assert list(syllable_totals(line, 1000)) == sorted({len(pattern) for pattern in combinations(line)})
    assert list(syllable_totals(line, 3)) == [total for total in syllable_totals(line, 1000) if total <= 3]


@FUZZ
@given(line_of_words)
def test_a_line_is_iambic_if_some_combination_is(line: str) -> None:
    level = {"00", "01", "02", "11", "21", "22"}
    wanted = any(
        len(pattern) % 2 == 0 and all(pattern[at : at + 2] in level for at in range(0, len(pattern), 2))
        for pattern in combinations(line)
    )
    assert is_line_iambic(line) is wanted


@for_each(
    ("value", "ranges"),
    [
        ("5 7", [(5, 5), (0, 0), (7, 7)]),
        ("[5, 7][3]4", [(5, 7), (3, 3), (4, 4)]),
        ("10", [(1, 1), (0, 0)]),
        (" 1  2\n", [(1, 1), (0, 0), (0, 0), (2, 2)]),
        (" ", []),
        ("[a]", []),
        ("[5,7", [(5, 5), (7, 7)]),
        ("[ 5, 7 ][ 3 ] [1 ,2]", [(5, 7), (3, 3), (0, 0), (1, 2)]),
    ],
)
def test_ranges(value: str, ranges: list[tuple[int, int]]) -> None:
    assert parse_syllable_ranges(value) == ranges


def test_syllables() -> None:
    assert syllables(["an old silent pond", "", "splash"], "5 1")
    assert not syllables(["an old silent pond", "", "splash"], "5 2")
    assert not syllables(["an old silent pond"], "55")
    assert not syllables(["zzxq"], "[0,9]")
    assert not syllables([""], " ")
    assert syllables(["splash"], " 1\n") and syllables(["splash", "", "pond"], " 1 1 ")
    assert not syllables(["cat " * (MAX_SYLLABLES + 1)], f"[1,{10**12}]")
    assert syllables(["cat " * MAX_SYLLABLES], f"[{MAX_SYLLABLES},{10**12}]")


def test_clean_lines() -> None:
    text = '\n"Hello"; (A) \nwell-known—fact.(b)\n\n(c) last!  \n(d)\nf(ab)\n'
    assert clean_lines(text) == ["hello", "well known fact", "", "(c) last  ", "", "f(ab)"]
    assert clean_lines(" \n ") == [""]
    assert clean_lines("One\u2028two\x0bthree\r\nfour\x85") == ["one\u2028two\x0bthree\r", "four"]


@for_each(
    ("lines", "scheme", "rhymes"),
    [
        (["a cat", "a hat"], "AA", True),
        (["a cat", "a cat"], "AA", True),
        (["a cat", "a hat"], "AB", False),
        (["a cat", "a hat"], "A", False),
        (["a cat", "", "the sun"], "A B", True),
        (["a cat", "x", "the sun"], "A B", False),
        (["a cat", "", "the sun"], "ABC", False),
        (["a zzxq", "the sun"], "AB", False),
        (["to read", "a bed"], "AA", True),
        (["to read", "a bed", "a bead"], "AAA", False),
        ([], "", True),
    ],
)
def test_rhymes(lines: list[str], scheme: str, rhymes: bool) -> None:
    assert rhyming_scheme(lines, scheme) is rhymes


@for_each(("lines", "scheme"), [(["  "], "A"), (["  "], " "), (["a cat", " ", "a hat"], "A A")])
def test_a_line_of_blanks_has_no_last_word(lines: list[str], scheme: str) -> None:
    with pytest.raises(IndexError):
        rhyming_scheme(lines, scheme)


@FUZZ
@given(reply_text, st.text("ABC [],01", max_size=8))
def test_any_poem_has_a_verdict(text: str, value: str) -> None:
    lines = clean_lines(text)
    assert all(line == line.lower() and "\n" not in line for line in lines)
    assert syllables(lines, value) in (True, False)
    assert all(isinstance(is_line_iambic(line), bool) for line in lines)
