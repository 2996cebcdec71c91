from typing import Any

import pytest

from lmms_eval.tasks.megabench.metrics import strings
from tests.cases import for_each


@for_each("response", ["B", "B. x", "(B", "Banana", "B and C"])
def test_a_letter_matches_what_starts_with_it(response: str) -> None:
    assert strings.exact_str_match(response, "B") == 1


@for_each("response", ["b", " B", "**B**", "[B]", "((B))", "The answer is B", ""])
def test_a_letter_does_not_match_elsewhere(response: str) -> None:
    assert strings.exact_str_match(response, "B") == 0


def test_exact_match_compares_pythons_spelling() -> None:
    assert strings.exact_str_match([1, 2], "[1, 2]") == 1
    assert strings.exact_str_match(None, "None") == 1
    assert strings.exact_str_match("中文", "中") == 0


def test_simple_match_ignores_dots_hyphens_blanks_and_case() -> None:
    assert strings.simple_str_match(" Dark-Red.\n", "darkred") == 1
    assert strings.simple_str_match("-5", "5") == 1
    assert strings.simple_str_match("a_b", "ab") == 0
    with pytest.raises(TypeError):
        strings.simple_str_match("5", 5)


def test_case_insensitive_match() -> None:
    assert strings.exact_str_match_case_insensitive("LEFT", "left") == 1
    assert strings.exact_str_match_case_insensitive(None, "left") == 0
    with pytest.raises(TypeError):
        strings.exact_str_match_case_insensitive(5, 5)


def test_code_results_keep_their_blanks() -> None:
    truth = "```result\n  1\n 2\n```"
    assert strings.code_result_exact_str_match("  1\n 2", truth) == 1
    assert strings.code_result_exact_str_match("1\n 2", truth) == 0
    assert strings.code_result_exact_str_match("81.25", "81.25") == 1


def test_several_references() -> None:
    assert strings.multi_ref_phrase("The Cat", "dog，the cat") == 1
    assert strings.multi_ref_phrase("cat", "['dog', 'cow']") == 0
    assert strings.multi_ref_phrase("", "") == 0


@for_each(
    ("response", "truth", "score"),
    [("ca", "abc", 1 / 3), ("", "", 1), (None, "x", 0), (None, None, 0), ([1, 2], [1, 3], 0.5)],
)
def test_similarity(response: Any, truth: Any, score: float) -> None:
    assert strings.normalized_similarity_damerau_levenshtein(response, truth) == pytest.approx(score)


def test_near_match_gives_the_similarity_above_its_threshold() -> None:
    assert strings.near_str_match("The Great Gatsby", "great gatsby") == 1
    assert strings.near_str_match("great gatsbi", "great gatsby") == pytest.approx(11 / 12)
    assert strings.near_str_match("great", "great gatsby") == 0
    assert strings.near_str_match("Bei Jing ", "北京") == 1
    assert strings.near_str_match(None, "x") == 0
