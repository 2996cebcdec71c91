from __future__ import annotations

import pytest

from lmms_eval.errors import UsageError
from lmms_eval.utils import apply_template
from tests.cases import for_each


def test_rendering() -> None:
    assert apply_template("Q: {{ q }}{{ n + 1 }}\n", {"q": "x", "n": 1}) == "Q: x2"
    assert apply_template("{{ q | regex_replace('[0-9]+', '#') }}", {"q": "a12b3"}) == "a#b#"


@for_each(
    "template", [
        "{{ missing }}", "{{ q", "{% for %}", "{{ q.__class__.__mro__ }}", "{{ q | regex_replace('(', '') }}",
        "{% set _ = xs.append(1) %}",
    ],
)  # fmt: skip
def test_what_cannot_be_rendered_is_refused(template: str) -> None:
    with pytest.raises(UsageError, match="template"):
        apply_template(template, {"q": "x", "xs": []})
