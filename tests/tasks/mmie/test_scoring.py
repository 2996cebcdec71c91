import re

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.mmie.scoring import is_readable, read_score, valid_score
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import FUZZ, cpu_limit

REFERENCE = re.compile(r"### Score.*?(-?\d+(?:\.\d+)?)", re.DOTALL)
"""The behaviour in one expression, as the specification words it; slow on long texts without a number."""
replies = st.lists(
    st.one_of(st.sampled_from(["### Score", "### ", "Score", "\n", "-", ".", "5", "2.5", "٤", "½", " "]), st.text()),
    max_size=12,
).map("".join)


@for_each(
    ("text", "score", "counted"),
    [
        ("### Score\n2.5", 2, True), ("### Score\n3.5", 4, True), ("### Score 6.5", 6, True),
        ("### Score\n7", 7, False),
        ("### Score\n-0.4", 0, True), ("### Score\n-0.6", -1, False), ("### score\n5", None, False),
        ("### Score\nnone\n### Score\n3", 3, True), ("### Score\n٤", 4, True), ("### Score\n½", None, False),
        ("5", None, False), ("", None, False),
    ],
)  # fmt: skip
def test_scores(text, score, counted):
    assert (read_score(text), valid_score(text) is not None) == (score, counted)
    assert is_readable(text) is counted


def test_a_number_beyond_floats_is_no_score():
    assert read_score("### Score\n" + "9" * 400) is None


def test_long_replies_are_read_quickly():
    with cpu_limit(1.0):
        assert read_score("### Score" * 200_000) is None
        assert read_score("### Score" + "-" * 2_000_000 + "4") == -4


@FUZZ
@given(replies)
def test_it_finds_what_the_expression_finds(text):
    match = REFERENCE.search(text)
    expected = None if match is None else round(float(match.group(1)))
    assert read_score(text) == expected


@FUZZ
@given(st.integers(0, 6), st.text(alphabet="abc \n:*()", max_size=10))
def test_a_plain_score_counts_whatever_stands_around(score, around):
    assert read_score(f"x### Score{around}{score}{around}") == score
