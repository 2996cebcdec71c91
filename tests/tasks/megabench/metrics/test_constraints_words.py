from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks._task_utils.linguistic import Lemmatizer, Linguistics
from lmms_eval.tasks.megabench.conversions.literals import ConversionError
from lmms_eval.tasks.megabench.metrics.constraints_words import (
    MAX_CHARS,
    MAX_SENTENCES,
    acrostic,
    contain,
    length,
    parse_constraint,
)
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import FUZZ, reply_text

PLAIN = Linguistics(
    sentences=lambda text: [part.strip() for part in text.split(".") if part.strip()],
    tokenize=str.split,
    lemmatizer=Lemmatizer(frozenset({"dog", "cat", "boat"}), {}),
)
"""Sentences end at dots, words at blanks."""


def kept(text: str, name: str, value: str) -> bool:
    return contain(text, name, value, lambda: PLAIN)


@for_each(
    ("text", "name", "value", "wanted"),
    [
        ("Dogs bark.", "contain", "[dog, puppy]", True),
        ("A puddle.", "contain1", "[dog, puppy]", False),
        ("A **dog**gy.", "contain", "dog", True),
        ("The dog. A dog.", "contain##times", "[dog]##2", True),
        ("The dog dog.", "contain##times", "[dog]##1", False),
        ("x. The boat. y.", "contain2##position", "[boat]##2", True),
        ("x. The boat. y.", "contain2##position", "[boat]##3", False),
        ("A boat. A boat.", "contain##position_only", "[boat]##1", False),
        ("A boat boat. x.", "contain##position_only", "[boat]##1", True),
        ("A boat. x.", "contain##position_only##times", "[boat]##1##9", True),
        ("A boat.", "contain##position##times", "[boat]##9##1", True),
        ("A dog.", "contain_only", "[[dog], [cat]]", True),
        ("A dog, a cat.", "contain_only", "[[dog], [cat]]", False),
        ("A cow.", "contain_only", "[[dog], [cat]]", False),
        ("A hot dog.", "contain_only", "[[hot dog], [cat]]", False),
        ("A cat. A cat.", "contain_only2##times", "[[dog], [cat]]##2", True),
        ("A dog.", "contain", "5", False),
        ("A dog.", "contain", "None", False),
        ("A dog.", "contain##times", '"dog"##"1"', True),
        ("", "contain", "[dog]", False),
    ],
)
def test_contain(text: str, name: str, value: str, wanted: bool) -> None:
    assert kept(text, name, value) is wanted


@for_each(
    ("name", "value", "message"),
    [
        ("contain##times", "[dog]", "2 names, but 1 values"),
        ("containment", "[dog]", "neither contain nor contain_only"),
        ("contain_only", "[[dog]", "no Python expression"),
    ],
)
def test_unreadable_constraints(name: str, value: str, message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        kept("A dog.", name, value)


def test_names_lose_their_numbers() -> None:
    constraint = parse_constraint("Contain12##Position_only", " [a] ## 007 ")
    assert constraint == {"contain": "[a]", "position_only": 7}


def test_limits() -> None:
    assert kept("dog " * ((MAX_CHARS - 4) // 4), "contain", "[dog]")
    with pytest.raises(ConversionError, match="characters are too many"):
        kept("a" * (MAX_CHARS + 1), "contain", "[dog]")
    assert kept("dog. " * (MAX_SENTENCES * 2), "contain##times", f"[dog]##{MAX_SENTENCES * 2}")
    with pytest.raises(ConversionError, match="sentences are too many"):
        kept(". ".join(map(str, range(MAX_SENTENCES + 1))), "contain", "[dog]")


def test_data_is_asked_for_last() -> None:
    def absent() -> Linguistics:
        raise NotEvaluated("no data")

    for response, value in (("x" * (MAX_CHARS + 1), "[dog]"), ({"poem": 1}, "[dog]"), ("x", "[dog]##1")):
        with pytest.raises((ConversionError, AttributeError)):
            contain(response, "contain", value, absent)  # type: ignore[arg-type]
    with pytest.raises(NotEvaluated):
        contain("x", "contain", "[dog]", absent)


@for_each(
    ("value", "wanted"),
    [
        (">3", True),
        (">4", False),
        ("<5", True),
        ("<4", False),
        ("> 2", True),
        (">x", False),
        ("=x", False),
        (">", False),
    ],
)
def test_length(value: str, wanted: bool) -> None:
    assert length("don't stop x_y", value) is wanted


def test_other_bounds_are_errors() -> None:
    with pytest.raises(ConversionError, match="write >N or <N"):
        length("one", "=1")
    with pytest.raises(TypeError):
        length(["one"], ">1")  # type: ignore[arg-type]


@for_each(
    ("text", "letters", "alliteration", "wanted"),
    [
        ("\n**Cats**\nare\n\n two", "ca t", False, True),
        ("cats\nare", "CA", False, True),
        ("cats\nare", "cab", False, False),
        ("cats\n\nare", "cba", False, False),
        ("cats\nx\nare", "c a", False, False),
        ("cute cats\nare awful", "ca", True, True),
        ("cute dogs", "c", True, False),
        ("", "c", False, False),
        ("cats\u2028are", "c", False, True),
        ("cats\x0bx\r\nare", "ca", False, True),
        ("cats\rare", "ca", False, False),
    ],
)
def test_acrostic(text: str, letters: str, alliteration: bool, wanted: bool) -> None:
    assert acrostic(text, letters, alliteration=alliteration) is wanted


def test_a_doubled_blank_is_an_error() -> None:
    with pytest.raises(IndexError):
        acrostic("cute  cats", "c", alliteration=True)


@FUZZ
@given(reply_text, st.lists(st.sampled_from(["dog", "cats", "a", "", "hot dog"]), max_size=3), st.integers(0, 3))
def test_times_is_the_sum_over_words_and_sentences(text: str, words: list[str], times: int) -> None:
    value = f"[{', '.join(words)}]##{times}"
    sentences = [
        " ".join(map(PLAIN.lemmatizer.lemma, s.lower().split())) for s in PLAIN.sentences(text.replace("**", ""))
    ]
    phrases: list[Any] = [" ".join(map(PLAIN.lemmatizer.lemma, word.split())) for word in words if words != [""]]
    total = sum(sentence.count(phrase) for sentence in sentences for phrase in phrases)
    assert kept(text, "contain##times", value) is (total == times and total > 0)
    assert kept(text, "contain", value.split("##")[0]) is (total > 0)
