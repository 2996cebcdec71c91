from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.mmbench.letters import LETTERS, find_letter, options_of
from tests.cases import for_each

OPTIONS = {"A": "red kite", "B": "blue glass lamp", "C": "old map", "D": "tin cup"}


@for_each(
    ("answer", "letter"),
    [
        ("B", "B"), ("B B", "B"), ("(B).", "B"), ("it is :B)", "B"), ("Best option: (B)", "B"), ("A", "A"),
        ("A is right", "A"), ("A lamp stands there", None), ("A, the lamp stands there B.", "B"), ("B, A", "A"),
        ("A or B", None), ("(A) or (B)", None), ("E", "E"), ("b", None), ("BLUE glass LAMP!", "B"),
        ("a red kite and an old map", None), ("", None), ("I cannot help with that.", None), ("Ａ", None),
        ("答案是B", None), ("<think>B", None), ("x " * 50_000, None),
    ],
)  # fmt: skip
def test_letters(answer, letter):
    assert find_letter(answer, OPTIONS) == letter


def test_absent_options_are_no_options():
    row = {"A": "banana", "B": None, "C": "nan", "D": "", "E": "fig"}
    assert options_of(row) == {"A": "banana", "E": "fig"}
    assert find_letter("some banana", options_of(row)) == "A"


@given(st.text(), st.dictionaries(st.sampled_from(LETTERS), st.text(min_size=1)))
def test_any_answer_gives_one_letter_or_none(answer, options):
    assert find_letter(answer, options) in {*LETTERS, None}


@given(
    st.lists(st.text("xyz", min_size=1), max_size=8), st.sampled_from("BCDE"), st.sampled_from(["{}", "{}.", "({})"])
)
def test_a_letter_among_other_words_is_found(words, letter, form):
    assert find_letter(" ".join([*words, form.format(letter)]), OPTIONS) == letter
