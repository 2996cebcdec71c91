from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.compat.answers import EvalAIAnswerProcessor
from lmms_eval.metrics.vqa import CONTRACTIONS
from tests.cases import for_each

NORMALISED = EvalAIAnswerProcessor("ignored", also="ignored")


@for_each(
    ("answer", "normalised"),
    [
        ("The Two\tDogs.", "2 dogs"),
        ("1,000 - about", "1000 about"),
        ("well-known", "well known"),
        ("3.5.", "3.5"),
        ("it's", "it 's"),
        ("none", "0"),
        ("wheres it", "where's it"),
        (". " * 40 + "end", "end"),
    ],
)
def test_answers(answer: str, normalised: str) -> None:
    assert NORMALISED(answer) == normalised


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_case_articles_and_outer_blanks_do_not_count(text: str) -> None:
    assert NORMALISED(text) == NORMALISED(f" {text.upper()}\t") or "'S" in text.upper()
    assert not {"a", "an", "the"} & set(NORMALISED(text).split())


def test_marks_beside_a_blank_are_removed_others_become_blanks() -> None:
    assert NORMALISED.process_punctuation("a/b") == "a b"
    assert NORMALISED.process_punctuation("a/b / c") == "ab  c"
    assert NORMALISED.process_punctuation("1,2 a/b") == "12 ab"


def test_contractions_are_corrected_words() -> None:
    assert len(CONTRACTIONS) == 114
    assert all(key != value and key == key.lower() for key, value in CONTRACTIONS.items())


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(AttributeError):
        NORMALISED(None)  # type: ignore[arg-type]
