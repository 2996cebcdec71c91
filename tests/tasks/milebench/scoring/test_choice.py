from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.milebench.scoring.fixed_choice import official_letters
from lmms_eval.tasks.milebench.scoring.samples import leftmost, normalise, read_letter
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import FUZZ, NASTY, cpu_limit, reply_text

MANY = [f"picture {index}" for index in range(1000)]
SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()]")
short = st.text(alphabet="abAB1. -,$*'&#~|%\r", max_size=8)


def read(answer: str, options: list[str]) -> tuple[str, str]:
    return read_letter(normalise(answer), [normalise(option) for option in options])


@for_each(
    ("answer", "options", "letter", "step"),
    [
        ("(B)", ["Yes", "No"], "B", "bare letter"),
        ("The answer is A.", ["x", "y", "z", "q"], "AA", "letters collected"),
        ("I'd say B", ["one", "two"], "AB", "letters collected"),
        ("", ["x", "y", "z"], "C", "empty"),
        ("?!", ["x", "y", "z"], "C", "empty"),
        ("3.5", ["3.5", "4"], "", "letters collected"),
        ("A. 3.5", ["3.5", "4"], "A", "letter and text"),
        ("picture 10", ["picture 1", "picture 10"], "A", "text"),
        ("A. no", ["no", "no change"], "A", "letter and text"),
        ("not blue but red", ["blue", "red"], "A", "text"),
        ("pizza red sauce", ["red", "blue", "green"], "A", "letter and text"),
        ("10,000", ["1,000", "100,000", "1.000", "10,000"], "A", "text"),
        ("AB", MANY[:28], "AB", "bare letter"),
        ("AB. picture 27", MANY[:28], "A", "letter and text"),
        ("zzz", ["a", ""], "B", "text"),
    ],
)
def test_the_specifications_examples(answer: str, options: list[str], letter: str, step: str) -> None:
    assert read(answer, options) == (letter, step)


@for_each("sign", "&#~%:")
def test_signs_that_mean_nothing_in_a_pattern_are_matched_by_text(sign: str) -> None:
    assert read(f"it is salt{sign}pepper", ["oil", f"salt {sign} pepper"]) == ("B", "text")


@for_each("sign", ".^$*|")
def test_signs_of_patterns_are_not_matched_by_text(sign: str) -> None:
    assert read(f"zz{sign}9", ["oil", f"zz{sign}9"]) == ("", "letters collected")


def test_options_are_normalised_once_more_before_their_text_is_looked_for() -> None:
    option = "' 'tis"
    assert normalise(option) == "'tis"
    assert read("so tis", ["oil", option]) == ("B", "text")


def test_the_key_of_a_late_option_comes_back_in_upper_case() -> None:
    options = [f"word {index:03}" for index in range(85)]
    assert official_letters(85)[84] == "Ba"
    assert read("word 084", options) == ("BA", "text")


def by_regular_expressions(text: str, options: list[str]) -> str:
    """The same steps with alternations, which take the leftmost match, and the first alternative at one place."""
    letters = official_letters(len(options))
    if not text:
        return "C"
    labelled = [normalise(f"{letter} {option}") for letter, option in zip(letters, options, strict=True)]
    match = re.search("|".join(map(re.escape, labelled)), text)
    if match:
        return match.group()[:1].upper()
    bare = [normalise(option).replace(" ", "") for option in options]
    match = re.search("|".join(map(re.escape, bare)), text.replace(" ", ""))
    for letter, option in zip(letters, bare, strict=True):
        if match and SPECIAL.sub(r"\\\g<0>", option) == match.group():
            return letter.upper()
    if len(text) in (1, 2) and text.upper() in letters:
        return text.upper()
    return "".join(character.upper() for character in text if character.upper() in letters)


@FUZZ
@given(st.one_of(short, reply_text), st.lists(short, min_size=1, max_size=6))
def test_equals_the_search_by_regular_expressions(answer: str, options: list[str]) -> None:
    cleaned = [normalise(option) for option in options]
    assert read(answer, options)[0] == by_regular_expressions(normalise(answer), cleaned)


@FUZZ
@given(short, st.lists(short, max_size=6))
def test_leftmost_finds_the_first_place(text: str, pieces: list[str]) -> None:
    places = [(text.find(piece), index) for index, piece in enumerate(pieces) if piece in text]
    assert leftmost(text, pieces) == (min(places)[1] if places else None)


@for_each("name", NASTY)
def test_a_megabyte_and_a_thousand_options(name: str) -> None:
    options = [normalise(option) for option in MANY]
    text = normalise(NASTY[name])
    with cpu_limit(1):
        read_letter(text, options)
