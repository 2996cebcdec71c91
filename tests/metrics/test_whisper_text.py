import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from transformers.models.whisper.english_normalizer import BasicTextNormalizer, EnglishTextNormalizer

from lmms_eval.metrics.speech import remove_sp
from lmms_eval.metrics.whisper_text import basic_normaliser, english_normaliser, spellings
from tests.regular_expressions import ends_within

PAIRS = spellings([]).pairs
MARKED = st.lists(st.sampled_from(["<", ">", "[", "]", "(", ")", "()", "one ", "'s ", "a ", "$5 ", "."]), max_size=14)
normalise = english_normaliser(PAIRS)


@given(MARKED.map("".join))
@example("..one 's one a 's <($5 .>'s a ")
def test_asides_are_removed_as_the_library_does(text: str) -> None:
    basic = BasicTextNormalizer()
    assert normalise(text) == basic(EnglishTextNormalizer(PAIRS)(remove_sp(text, "en")))
    assert basic_normaliser()(text) == basic(remove_sp(text, ""))


@pytest.mark.parametrize(
    "text", ["(" * 100_000, "<" * 100_000, "[(" * 50_000, "<)>" + "(" * 100_000, "9" * 100_000, "答" * 100_000, ""]
)
def test_long_and_strange_transcripts_are_read_in_linear_time(text: str) -> None:
    assert ends_within(5.0, normalise, text)


def test_the_packaged_spellings_lead_to_words_that_stay() -> None:
    assert PAIRS["harbour"] == "harbor"
    assert not set(PAIRS) & set(PAIRS.values())
    assert all(re.fullmatch(r"[a-z]+", word) for word in (*PAIRS, *PAIRS.values()))
