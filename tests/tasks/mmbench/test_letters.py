import pytest

from lmms_eval.tasks.mmbench.letters import find_letter, options_of

OPTIONS = {"A": "red kite", "B": "blue glass lamp", "C": "old map", "D": "tin cup"}


@pytest.mark.parametrize(
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
