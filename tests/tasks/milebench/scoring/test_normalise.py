from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.tasks.milebench.scoring.samples import MARKS, normalise, normalise_fixed
from tests.cases import for_each
from tests.tasks.megabench.fuzzing import FUZZ, NASTY, cpu_limit

texts = st.text(alphabet=f"{MARKS}aB1,. '\n\t\r:*é٣", max_size=30)


@for_each(
    ("text", "wanted"),
    [
        ("Hello, World!", "hello world"),
        ("a-b", "a b"),
        ("a - b", "a  b"),
        ("a-b 1,2", "ab 12"),
        ("A. 3.5", "a 3.5"),
        ("'tis 'nuff'", "tis 'nuff"),
        ("A: b", "a: b"),
        (" .5 and 5. ", ".5 and 5"),
        ("." * 33, "."),
        ("x\r\n", "x"),
        ("", ""),
    ],
)
def test_as_the_reference(text: str, wanted: str) -> None:
    assert normalise(text) == wanted


@for_each(
    ("text", "wanted"),
    [
        ("a-b 1,200", "a b 1200"),
        ("." * 50, ""),
        ("Yes. No. 3.5.", "yes no 3.5"),
        ("a - b, c", "a  b c"),
    ],
)
def test_without_its_slips(text: str, wanted: str) -> None:
    assert normalise_fixed(text) == wanted


def step_by_step(text: str) -> str:
    """The specification's steps, one mark after the other."""
    first = out = text.replace("\n", " ").replace("\t", " ").strip()
    for mark in MARKS:
        deletes = mark + " " in first or " " + mark in first or re.search(r"\d,\d", first)
        out = out.replace(mark, "" if deletes else " ")
    kept, left = [], 32
    for at, character in enumerate(out):
        if character == "." and left and not re.match(r"\d", out[at + 1 : at + 2]):
            left -= 1
        else:
            kept.append(character)
    return "".join(kept).strip("'").strip('"').strip().lower()


@FUZZ
@given(texts)
def test_marks_at_once_equal_marks_in_turn(text: str) -> None:
    assert normalise(text) == step_by_step(text)


@for_each("name", NASTY)
def test_a_megabyte_is_no_matter(name: str) -> None:
    with cpu_limit(1):
        normalise(NASTY[name])
        normalise_fixed(NASTY[name])
