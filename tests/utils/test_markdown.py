from __future__ import annotations

from lmms_eval.utils.terminal import escaped
from tests.cases import for_each


@for_each(
    ("text", "shown"),
    [
        ("snake_case", "snake_case"),
        ("_x_ *y*", r"\_x\_ \*y\*"),
        ("<script>[a](b)", r"\<script\>\[a\](b)"),
        ("# a\n- b", r"\# a - b"),
        ("\x1b[1m", r"\\u001b\[1m"),
        ("a\\|b", r"a\\|b"),
    ],
)
def test_escaped_texts_are_no_markup(text: str, shown: str) -> None:
    assert escaped(text) == shown
