from __future__ import annotations

import csv
import io
import re

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.utils.terminal import no_formula
from tests.cases import for_each

TEXTS = st.text(st.sampled_from("a1 =+-@;,|\t\r\n\"'"), max_size=12)


@for_each(
    ("text", "safe"),
    [
        ("", ""),
        ("plain; text", "plain; text"),
        ("a=b+c", "a=b+c"),
        ("=1+1", "'=1+1"),
        ("  =1+1", "'  =1+1"),
        ("-3", "'-3"),
        ("a;=1+1", "a;'=1+1"),
        ("a; =1+1", "a;' =1+1"),
        ("a;;@x", "a;;'@x"),
        ("a\n=1+1", "a\n'=1+1"),
        ("a\t+1", "a\t'+1"),
        ('a;"=1+1"', 'a;\'"=1+1"'),
    ],
)
def test_formulas_lose_their_meaning(text: str, safe: str) -> None:
    assert no_formula(text) == safe


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_no_cell_of_a_file_is_a_formula_whatever_separates_cells(texts: list[str]) -> None:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerow([no_formula(text) for text in texts])
    content = written.getvalue()
    rows = csv.reader(io.StringIO(content, newline=""))
    assert not any(re.match(r"[ \t\r]*[=+\-@]", cell) for row in rows for cell in row)
    # Without any regard to quotes, as a file is split whose separator is another one.
    parts = re.split(r"[;\t\r\n]", content)
    assert not any(re.match(r'[ "]*[=+\-@]', part) for part in parts)


@given(TEXTS)
def test_only_apostrophes_are_added(text: str) -> None:
    plain = iter(no_formula(text))
    assert all(any(found == wanted for found in plain) for wanted in text)
    assert len(no_formula(text).replace("'", "")) == len(text.replace("'", ""))
