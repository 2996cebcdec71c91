from typing import Any

import pytest

from lmms_eval.tasks.megabench.metrics import sequences
from tests.cases import for_each


@for_each(
    ("response", "truth", "score"),
    [
        ("[1, 2]", "{2, 1}", 1),
        ("a, b", "['b', 'a']", 1),
        ("[1]", "['1']", 0),
        ("[[1]]", "[[2]]", 1),
        ([[1]], [[2]], 0),
        (None, "[]", 1),
        ("A", "a", 0),
    ],
)
def test_set_equality(response: Any, truth: Any, score: float) -> None:
    assert sequences.set_equality(response, truth) == score


def test_set_equality_without_case() -> None:
    assert sequences.set_equality_case_insensitive("a, B", "A, b") == 1
    assert sequences.set_equality_case_insensitive("1", "1") == 0


def test_sets_in_texts() -> None:
    assert sequences.str_set_equality_comma("A, b", "['B', 'a']") == 1
    assert sequences.str_set_equality_comma(None, "None") == 1
    assert sequences.str_set_equality_line_break("B\\na", "A\nb") == 1
    assert sequences.str_set_equality_line_break("- a", "a") == 0
    with pytest.raises(TypeError):
        sequences.str_set_equality_line_break(["a"], "a")


def test_jaccard() -> None:
    assert sequences.jaccard_index("1, 2, 3", "2, 3, 4") == pytest.approx(0.5)
    assert sequences.jaccard_index("[]", "[]") == 1
    assert sequences.jaccard_index(None, "[]") == 0


@for_each(
    ("response", "truth", "score"),
    [
        ("A, b", "a, c", 1 / 3),
        ([("Ann Lee", "x_y")], "[('annlee', 'XY')]", 1),
        ([("Ann", 5)], "[('ann', '5')]", 0),
        ("[5]", "[('a', 'b')]", 0),
        ("[1]", "[1]", 0),
        ("['a']", ["a", ("b", "c")], 0),
        (None, "a", 0),
    ],
)
def test_jaccard_without_case(response: Any, truth: Any, score: float) -> None:
    assert sequences.jaccard_index_case_insensitive(response, truth) == pytest.approx(score)


def test_jaccard_without_case_needs_a_truth() -> None:
    with pytest.raises(ValueError, match="empty"):
        sequences.jaccard_index_case_insensitive("a", "")


def test_precision() -> None:
    assert sequences.set_precision("a, b", "a, c, d") == 0.5
    assert sequences.set_precision("", "a") == sequences.set_precision("[[1]]", "a") == 1
    assert sequences.set_precision(None, "a") == 0


def test_chess_moves() -> None:
    assert sequences.chess_move_list_jaccard_index("Qh7#!, Nf3", "Qh7, Nf3!") == 1
    assert sequences.chess_move_list_jaccard_index("Qh7!#", "Qh7") == 0
    with pytest.raises(TypeError):
        sequences.chess_move_list_jaccard_index("1", "1")


def test_lists() -> None:
    assert sequences.sequence_equality([1, 2], "[1, 2]") == 1
    assert sequences.sequence_equality("[2, 1]", "[1, 2]") == 0
    assert sequences.sequence_equality_case_insensitive("A, b", "a, B") == 1
    assert sequences.sequence_equality_case_insensitive("['1']", "['1']") == 1


@for_each(
    ("response", "truth", "score"),
    [("A, x", "a, b", 0.5), ("a", "a, b", 0), ("1, 2", "1, 3", 0.5), ("[None]", "[None]", 0), ("[[1]]", "[[1]]", 0)],
)
def test_sequence_accuracy(response: Any, truth: Any, score: float) -> None:
    assert sequences.sequence_accuracy_case_insensitive(response, truth) == score


def test_sequence_accuracy_without_positions_or_texts() -> None:
    with pytest.raises(ValueError, match="empty"):
        sequences.sequence_accuracy_case_insensitive("", "")
    with pytest.raises(TypeError):
        sequences.sequence_accuracy_case_insensitive("1", "['1']")


def test_common_prefix() -> None:
    assert sequences.longest_common_list_prefix_ratio("a, b, x", "a, b, c, d") == 0.5
    assert sequences.longest_common_list_prefix_ratio("a, b, c", "a") == 1
    with pytest.raises(ValueError, match="empty"):
        sequences.longest_common_list_prefix_ratio("a", "")


@for_each(
    ("name", "response", "truth", "official", "fixed"),
    [
        ("set_equality", "[[1, 2]]", "[[3]]", 1, 0),
        ("set_equality", "[[1, 2], [3]]", "[[3], [1, 2]]", 1, 1),
        ("set_equality", "[[1, 2]]", [[1, 2]], 0, 1),
        ("set_equality", "[(1, 2)]", "[[1, 2]]", 0, 1),
        ("set_equality", "[1, 2]", "{2, 1}", 1, 1),
        ("set_equality", "None", "[]", 0, 0),
        ("set_equality", "None", "None", 1, 1),
        ("set_equality", "[[1", "[]", 1, 1),
        ("set_equality", None, "[]", 1, 1),
        ("set_equality", 5, "[5]", 0, 0),
        ("set_equality_case_insensitive", "[['a']]", "[['b']]", 1, 0),
        ("set_equality_case_insensitive", "a, B", "A, b", 1, 1),
        ("str_set_equality_comma", "[['a']]", "[['b']]", 1, 0),
        ("str_set_equality_comma", "[['a']]", "[['a']]", 1, 1),
        ("str_set_equality_comma", ["a"], "[]", 1, 1),
        ("str_set_equality_comma", "A, b", "['B', 'a']", 1, 1),
        ("jaccard_index", "[[1], [2]]", "[[2], [3]]", 1, 1 / 3),
        ("jaccard_index", "1, 2, 3", "2, 3, 4", 0.5, 0.5),
        ("jaccard_index", "None", "[]", 1, 1),
        ("jaccard_index", None, "[]", 0, 0),
        ("jaccard_index_case_insensitive", "[['Ann Lee', 'x_y']]", "[('annlee', 'XY')]", 0, 1),
        ("jaccard_index_case_insensitive", "A, b", "a, c", 1 / 3, 1 / 3),
        ("jaccard_index_case_insensitive", None, "a", 0, 0),
        ("jaccard_index_case_insensitive", "[['a', 'b']]", "[('a', 'b'), ('c', 'd')]", 0, 0.5),
        ("set_precision", "[[1]]", "[[2]]", 1, 0),
        ("set_precision", "[[1]]", "[[1]]", 1, 1),
        ("set_precision", "", "a", 1, 0),
        ("set_precision", "[]", "[]", 1, 1),
        ("set_precision", "None", "a", 1, 0),
        ("set_precision", "None", "None", 1, 1),
        ("set_precision", "(", "a", 1, 0),
        ("set_precision", [], "a", 1, 0),
        ("set_precision", "a, b", "a, c, d", 0.5, 0.5),
        ("set_precision", None, "", 0, 0),
    ],
)
def test_official_and_fixed(name: str, response: Any, truth: Any, official: float, fixed: float) -> None:
    assert getattr(sequences, name)(response, truth) == pytest.approx(official)
    assert getattr(sequences, f"{name}_fixed")(response, truth) == pytest.approx(fixed)
