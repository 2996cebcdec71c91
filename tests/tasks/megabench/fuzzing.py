"""Random texts that look like replies, and limits on the time that a function may take for one."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

from hypothesis import settings
from hypothesis import strategies as st

IS_THOROUGH = os.environ.get("LMMS_EVAL_TEST_FUZZ") == "1"
"""``--fuzz`` was given (``tests/conftest.py``)."""
FUZZ = settings(max_examples=10_000 if IS_THOROUGH else 200, deadline=None)

_PIECES = [
    *"{}[]()<>'\"\\`*:,.-_=$%^#/ \n\t0123456789abAB",
    "Answer:", "answer:", "**Answer:", "```", "```json\n", "```python\n", "\n```", "'a': 1", '"a": "[1, 2]"',
    "None", "True", "NaN", "1e999", "0x1F", "9**9", "1_000", "b'x'", "f'{x}'", "\\n", "e", "E", "\r\n", "\0",
    "\\frac{1}{2}", "\\boxed{", "\\overline{", "\\bar", "\\begin{a}[", "\\(", "\\)",
    "π", "α", "ς", "ā", "\u0304", "，", "北京", "é", "\ud800",
    "<point>", "</point>", "<box>0,0,1,1</box>", "(0.1, 0.2)", "[0, 0, 1, 1]", "{'a': [1]}", "{[1]: 2}",
    "__DOUBLE_QUOTE__",
]  # fmt: skip

reply_text = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(_PIECES), max_size=24).map("".join))
_plain = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), reply_text)
reply_value = st.recursive(
    _plain,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.one_of(st.integers(0, 3), st.sampled_from(["a", "b", "x"])), inner, max_size=4),
    ),
    max_leaves=8,
)
"""What a parser can hand to a metric."""

MEGABYTE = 1_000_000 if IS_THOROUGH else 200_000
"""Quadratic time takes some 20 s for 200,000 characters, far more than any limit."""
NASTY = {
    "unclosed fence": "```" + "\n" * 1000 + "x",
    "unclosed fence of a megabyte": "```json" + "\n" * MEGABYTE,
    "square brackets": "[" * MEGABYTE,
    "braces": "{" * MEGABYTE,
    "both": "[{" * (MEGABYTE // 2),
    "balanced": "[" * (MEGABYTE // 2) + "]" * (MEGABYTE // 2),
    "many dictionaries": "{}" * (MEGABYTE // 2),
    "unreadable dictionaries": "{a}" * (MEGABYTE // 3),
    "quoted lists": "{" + '"[1]" ' * (MEGABYTE // 6) + "}",
    "a long list": "[" + "1," * (MEGABYTE // 2) + "1]",
    "a list just short enough": "[" + "1," * 95_000 + "1]",
    "words": "word " * (MEGABYTE // 5),
    "digits": "9" * MEGABYTE,
    "newlines": "a" + "\n" * MEGABYTE + "b",
    "blanks": "Answer:" + " " * MEGABYTE,
    "markers": "**Answer:" * (MEGABYTE // 9),
    "nested markers": "**AnsAnswer:wer:" * (MEGABYTE // 16),
    "minus signs": "-" * MEGABYTE + "1",
    "a sum": "1+" * (MEGABYTE // 2) + "1",
    "powers": "9**9**9**9",
    "backslashes": "\\" * MEGABYTE,
    "open tags": "<point>" * (MEGABYTE // 7),
    "open boxes": "\\boxed{" * (MEGABYTE // 7),
    "environments": "\\begin{a}[" * (MEGABYTE // 10),
    "macrons": "a" + "\u0304" * MEGABYTE,
    "dollars": "$" * MEGABYTE,
    "equals signs": "= \n" * (MEGABYTE // 3),
    "NUL": "\0" * MEGABYTE,
    "fractions": "\\frac{1}{" * 300,
}


@contextlib.contextmanager
def cpu_limit(seconds: float = 2.0) -> Iterator[None]:
    """Fail if the block takes more processor time of this process (a busy machine does not count)."""
    start = time.process_time()
    yield
    assert time.process_time() - start < seconds
